// Waiting for something to become true, with the reason in the error when it does not.

export const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

/** Calls fn until it gives something truthy; throws after timeout (ms). */
export async function until(what, fn, timeout = 15000, every = 100) {
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
