import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { useSpeech } from "../i18n.js";
import { Icon } from "./Icon.js";

/**
 * A modal dialog on the browser's own <dialog>: it keeps the focus inside, closes on
 * Escape, and gives the focus back.
 */
export function Dialog({ title, close, children }: { title: string; close: () => void; children: ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null);
  const { t } = useSpeech();
  const id = useId();
  // Before anything is painted: the next key must not go to what stood there before.
  useLayoutEffect(() => {
    const el = ref.current!;
    el.showModal();
    return () => el.close(); // this gives the focus back
  }, []);
  return (
    <dialog
      ref={ref}
      class="dialog"
      aria-labelledby={id}
      onCancel={(e) => {
        e.preventDefault();
        close();
      }}
      onClick={(e) => {
        if (e.target === ref.current) close(); // the backdrop
      }}
    >
      <div class="dialog-body">
        <header class="dialog-head">
          <h2 id={id}>{title}</h2>
          <button type="button" class="round" aria-label={t.settings.close} onClick={close}>
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
