// Snapshots: copies of values that are published when they are done, off the training thread.
#pragma once
#include <cstdint>

#include "hooks.h"
#include "profile.h"
#include "program.h"

namespace dvm {

// At most that many bytes wait to be copied, or for copies that are late.
inline constexpr int64_t kSnapshotQueueBytes = int64_t{64} << 20;

// Copies `value`, which lies in the memory of `device`, into `event.data` and publishes the event; once for every call. Both ends are held
// until the copy is done. Without bytes, as a placeholder with the reason, is published: a value above `limit` bytes; one whose copy has
// not begun (on the host) or is not done (on a device) when the timeout is over; one whose copy failed; and one that finds too many bytes
// waiting before it. A copy that is late is let go, once it is
// done, when the next snapshot or synchronize_snapshots comes, or dropped after a second, longer limit.
void snapshot(Value value, HookEvent event, int64_t limit, const Profile& device);

// For snapshots taken from now on, in milliseconds; 100 and 10,000 at first. Throws UserError unless 1 <= timeout <= 60000 and
// timeout <= drop_after <= 600000; drop_after 0: a hundred times the timeout, at most 600000.
void set_snapshot_timeout(int64_t timeout, int64_t drop_after = 0);

// Waits until all snapshots so far are published.
void synchronize_snapshots();
// For tests: keeps the copy stream busy that long.
void delay_snapshots(int milliseconds);

struct SnapshotStats {
  int64_t taken = 0, published = 0, placeholders = 0;  // taken = published + placeholders + those still waiting
  int64_t late = 0, dropped = 0;                       // of the placeholders: copies done after all, and given up
  int64_t held_bytes = 0;                              // waiting, or held for late copies
};
SnapshotStats snapshot_stats();

}  // namespace dvm
