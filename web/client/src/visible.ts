/**
 * Says up to which seq messages are really seen: on screen, in a window that has
 * the focus. Works on any scrolling element whose messages carry `data-seq`.
 */
export interface VisibleOptions {
  /** The element that scrolls. */
  root: HTMLElement;
  /** The highest seq that is seen; called again when it rises. */
  seen: (seq: number) => void;
  /** Whether somebody is looking; by default the window's focus and visibility. */
  looking?: () => boolean;
}

export class VisibleMessages {
  readonly #observer: IntersectionObserver;
  readonly #onScreen = new Map<Element, number>();
  readonly #options: VisibleOptions;
  #highest = 0;
  #stop: (() => void)[] = [];

  constructor(options: VisibleOptions) {
    this.#options = options;
    // The end of a message decides: a long one is read when its last lines are there.
    this.#observer = new IntersectionObserver((entries) => this.#moved(entries), {
      root: options.root,
      threshold: [0, 0.5, 1],
    });
    const check = () => this.check();
    for (const [target, event] of [[window, "focus"], [document, "visibilitychange"], [document, "focusin"], [document, "pointerdown"]] as const) {
      target.addEventListener(event, check);
      this.#stop.push(() => target.removeEventListener(event, check));
    }
  }

  /** Observes the elements that are there now and forgets those that are gone. */
  observe(elements: Iterable<Element>): void {
    const now = new Set(elements);
    for (const el of this.#onScreen.keys()) if (!now.has(el)) this.#onScreen.delete(el);
    for (const el of now) this.#observer.observe(el);
  }

  /** Looks again whether somebody is looking. */
  check(): void {
    if (!(this.#options.looking ?? windowHasFocus)()) return;
    const highest = Math.max(0, ...this.#onScreen.values());
    if (highest === this.#highest) return;
    this.#highest = highest;
    if (highest > 0) this.#options.seen(highest);
  }

  stop(): void {
    this.#observer.disconnect();
    for (const stop of this.#stop) stop();
    this.#stop = [];
  }

  #moved(entries: IntersectionObserverEntry[]): void {
    for (const e of entries) {
      const seq = Number((e.target as HTMLElement).dataset["seq"]);
      const bottom = e.rootBounds ? e.boundingClientRect.bottom <= e.rootBounds.bottom + 1 : e.isIntersecting;
      if (e.isIntersecting && (bottom || e.intersectionRatio > 0.5) && seq > 0) this.#onScreen.set(e.target, seq);
      else this.#onScreen.delete(e.target);
    }
    this.check();
  }
}

/** Whether this window is in front and its user in it. */
export function windowHasFocus(): boolean {
  return document.visibilityState === "visible" && document.hasFocus();
}
