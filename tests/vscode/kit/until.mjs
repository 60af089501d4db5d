// Waiting for something to become true, with the reason in the error when it does not.

/** How long anything is waited for, in ms. A wait ends as soon as it can: the limit only has to be longer than a busy machine takes. */
export const PATIENCE = 60_000;

export const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

/** Calls fn until it gives something truthy; throws after timeout (ms). */
export async function until(what, fn, timeout = PATIENCE, every = 100) {
  const end = Date.now() + timeout;
  let err;
  for (;;) {
    try {
      const v = await fn();
      if (v) return v;
      err = undefined;
    } catch (e) {
      err = e;
    }
    if (Date.now() > end) throw new Error(`timed out waiting for ${what}${err ? ': ' + err.message : ''}`);
    await sleep(every);
  }
}
