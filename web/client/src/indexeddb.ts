/** The little of IndexedDB that is needed here, as promises. */

/** Opens a database at its first use, and again after it was closed for a newer page. */
export function openDatabase(name: string, create: (db: IDBDatabase) => void): () => Promise<IDBDatabase> {
  let opened: Promise<IDBDatabase> | undefined;
  const forget = () => {
    opened = undefined;
  };
  const open = () =>
    new Promise<IDBDatabase>((resolve, reject) => {
      const request = indexedDB.open(name, 1);
      request.onupgradeneeded = () => create(request.result);
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        // Another tab with a newer version of the page must be able to upgrade.
        request.result.onversionchange = () => {
          request.result.close();
          forget();
        };
        request.result.onclose = forget;
        resolve(request.result);
      };
    });
  return () => {
    if (!opened) {
      opened = open();
      opened.catch(forget);
    }
    return opened;
  };
}

/**
 * Runs one request in a transaction of its own. Resolves when the transaction is
 * committed, not when the request is done: only then it outlives the page.
 */
export async function transact<T>(
  db: () => Promise<IDBDatabase>,
  store: string,
  mode: IDBTransactionMode,
  ask: (s: IDBObjectStore) => IDBRequest,
  durability: IDBTransactionDurability = "default",
): Promise<T> {
  const opened = await db();
  return new Promise((resolve, reject) => {
    const tx = opened.transaction(store, mode, { durability });
    const request = ask(tx.objectStore(store));
    tx.oncomplete = () => resolve(request.result as T);
    tx.onabort = tx.onerror = () => reject(tx.error ?? request.error);
  });
}
