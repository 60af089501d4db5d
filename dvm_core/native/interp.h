// Runs compiled areas: for every tile on every core, the dispatch loop over its words.
#pragma once
#include "areacode.h"

namespace dvm {

// One area on the calling thread and the pool. Throws UserError (an index out of range).
void run_area(const AreaCode& area, RunIO& io);

// ---- shared with move.cc ----------------------------------------------------------------------------------------------------------

// An operand of a move in memory.
struct Memory {
  uint8_t* data;
  DType dtype;
  Dims shape, strides;  // strides in elements
};
// result = the move instruction of this area. `base`: addresses by slot.
void run_move(const AreaCode& area, const ProgramCode& code, void* const* base);

// value in the form of a dtype, at most 8 bytes.
void write_scalar(void* to, DType dtype, const Imm& value);

// What a reduction of nothing gives: 0, or the least or greatest number of the dtype.
void write_identity(void* to, DType dtype, Op op);

// rows x cols elements, from any axes (outermost first, strides in bytes) to contiguous memory.
void read_axes(uint8_t* dst, const uint8_t* src, const ViewAxis* row_axes, int rows_rank, const ViewAxis* col_axes, int cols_rank, int64_t row, int64_t rows,
               int64_t col, int64_t cols, int item);

}  // namespace dvm
