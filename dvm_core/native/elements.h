// Single values and strided runs of elements, by dtype.
#pragma once
#include "areacode.h"

namespace dvm {

// Room for one element of any dtype.
struct alignas(16) Cell {
  uint8_t bytes[16];
};

// An immediate in the form of a dtype.
void write_scalar(void* to, DType dtype, const Imm& value);

// What a reduction of nothing gives: 0, 1, or the least or greatest number of the dtype.
void write_identity(void* to, DType dtype, Op op);

// Axes outermost first, strides in bytes.
struct Axes {
  const ViewAxis* at;
  int rank;
};
// rows x cols elements from (row, col) on, to contiguous memory.
void read_axes(uint8_t* dst, const uint8_t* src, Axes row_axes, Axes col_axes, int64_t row, int64_t rows, int64_t col, int64_t cols, int item);

}  // namespace dvm
