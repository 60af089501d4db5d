// Convolutions: their geometry, and the tile instructions Conv2D and Conv2DWeight.
#pragma once
#include "core.h"

namespace dvm {

// The places of CONV2D's and the pools' attributes; each but the groups stands for two, y and x.
namespace conv_attrs {
inline constexpr size_t stride = 0, before = 2, dilation = 4, gap = 6, groups = 8, count = 9;
}

// Of instruction i; its slots are still open.
Convolution make_convolution(const ProgramCode& code, const Resolved& resolved, int i);

// How the tiles read the window matrix, now that they are known.
void choose_way(Convolution* v, const Geometry& g);

// For a block of the window matrix or for planes; and for a product with the planes' pitch.
int64_t convolution_ub_bytes(const Convolution& v, const Geometry& g);
int64_t convolution_wide_bytes(const Convolution& v, const Geometry& g);

// Before the tiles: halves widened to float32, irregular weights made contiguous.
void prepare_convolution(const Run& run, const Convolution& v);

void do_convolution(Core& c, const uint64_t* w);

}  // namespace dvm
