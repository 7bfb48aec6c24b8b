/** What the build does beyond Vite's own. */
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { Plugin } from "vite";

const compressible = /\.(js|css|html|svg|json|webmanifest)$/;

/**
 * Writes .br and .gz beside each text file that gets smaller, so that the gateway
 * serves them as they are.
 */
export function compress(): Plugin {
  return {
    name: "xabar:compress",
    apply: "build",
    enforce: "post",
    generateBundle: {
      order: "post",
      handler(_, bundle) {
        for (const [name, file] of Object.entries(bundle)) {
          if (!compressible.test(name)) continue;
          const source = Buffer.from(file.type === "chunk" ? file.code : file.source);
          const variants = {
            br: brotliCompressSync(source, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }),
            gz: gzipSync(source, { level: 9 }),
          };
          for (const [ending, smaller] of Object.entries(variants)) {
            if (smaller.length < source.length) {
              this.emitFile({ type: "asset", fileName: `${name}.${ending}`, source: smaller });
            }
          }
        }
      },
    },
  };
}

/** Fails the build when the page would load anything from elsewhere. */
export function noRemoteCode(): Plugin {
  return {
    name: "xabar:no-remote-code",
    apply: "build",
    transformIndexHtml: {
      order: "post",
      handler(html) {
        if (/(?:src|href)="(?:https?:)?\/\//.test(html)) throw new Error("index.html loads something from another host");
        if (/<script(?![^>]*\ssrc=)[^>]*>/.test(html)) throw new Error("index.html has an inline script");
        return html;
      },
    },
  };
}
