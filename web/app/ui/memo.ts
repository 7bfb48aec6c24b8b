import { Component, createElement, type ComponentChildren, type FunctionComponent } from "preact";

/** A component that renders again only when one of its properties is another one. */
export function memo<P extends object>(render: FunctionComponent<P>): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      const now = this.props as Record<string, unknown>;
      const then = next as Record<string, unknown>;
      for (const key in then) if (then[key] !== now[key]) return true;
      for (const key in now) if (!(key in then)) return true;
      return false;
    }
    override render(): ComponentChildren {
      return createElement(render, this.props as P);
    }
  }
  return Memo as unknown as FunctionComponent<P>;
}
