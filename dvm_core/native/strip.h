// Strips in tile code: which instructions are computed together, and what the kernels need to know of them.
#pragma once
#include "core.h"
#include "strip_kernels.h"
#include "tile.h"

namespace dvm {

// The handler of a strip and of the instructions behind its head.
void do_strip(Core& c, const uint64_t* w);

// Whether placed instructions from `first` on are this update.
bool is_update(const UpdateLoop& update, const TileOp* first);
// The update that `count` placed instructions are, null if they are none.
const UpdateLoop* update_of(const TileOp* first, int32_t count);

}  // namespace dvm
