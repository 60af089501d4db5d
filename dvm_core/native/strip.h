// Strips in tile code: which instructions are computed together, and what the kernels need to know of them.
#pragma once
#include "core.h"

namespace dvm {

// The handler of a strip and of the instructions behind its head.
void do_strip(Core& c, const uint64_t* w);

}  // namespace dvm
