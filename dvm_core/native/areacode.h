// A compiled area: geometry, slot table and tile code. Written by tile.cc and encode.cc, read by interp.cc.
#pragma once
#include <memory>
#include <vector>

#include "fuse.h"
#include "isa.h"
#include "kernels.h"
#include "strip_kernels.h"
#include "sync.h"

namespace dvm {

// The iteration space as rows x cols, cut in units (what a worker takes) of tiles. Rows come in groups (all rows, or those that a column
// reduction joins), groups in blocks, blocks in tiles; columns in chunks of tile_cols.
struct Geometry {
  int64_t rows = 1, cols = 1;
  int64_t group_rows = 1, block_rows = 1, tile_rows = 1, tile_cols = 1;
  int64_t groups = 1, blocks = 1, chunks = 1;   // rows / group_rows, blocks of a group, chunks of the columns
  bool chunk_outer = false;                     // units go down the rows of a chunk before the next chunk
  int64_t units() const { return groups * blocks * chunks; }
  bool narrow() const { return tile_cols < cols && tile_rows > 1; }  // a tile is no contiguous run of memory
};

struct ViewAxis {
  int64_t extent, stride;  // stride in bytes
};

// Memory outside the UB. Bound: address = base + row * row_step + col * col_step, used in place. Else the operand of load_view, through
// axes [first_axis, first_axis + row_axes + col_axes), outermost first.
struct GlobalSlot {
  enum Kind : uint8_t { kValue, kWorkspace, kImmediate, kConstant };
  Kind kind = kValue;
  DType dtype = DType::kNone;
  bool bound = true, written = false;
  int32_t value = -1;      // local value id; kImmediate: instruction; kConstant: index of AreaCode::constants
  int64_t offset = 0;      // bytes: within the value's memory, or (kWorkspace) within the workspace
  int64_t row_step = 0, col_step = 0;
  int32_t first_axis = 0, row_axes = 0, col_axes = 0;
};

// A reduction over more than one tile: [outer, parts, width] partial results, joined over `parts` in order.
struct Join {
  Op op = Op::kSUM;            // SUM, MAX, MIN or PROD
  bool row = false;            // over columns; width is 1
  DType dtype = DType::kNone;  // of the partial results (halves are reduced in float32)
  DType out = DType::kNone;
  int64_t outer = 1, parts = 1, width = 1;
  int64_t divisor = 0;         // MEAN: divide by it; 0: not
  bool direct = false;         // one part, same dtype: the partial results are the result
  int64_t scratch = 0;         // workspace offset of the partial results
  int32_t result = -1;         // slot
};

// A product of a cube area. Chained: its left operand is the tile (a.slot -1), its rows are the tile's and go to memory.
struct Product {
  DType from = DType::kNone;    // of the operands
  DType dtype = DType::kNone;   // of the sums: float32 for halves
  int64_t batches = 1, m = 0, n = 0, k = 0;
  struct Side {
    int32_t slot = -1;
    int64_t row = 0, col = 0;   // strides in elements
    int64_t matrices = 1;       // distinct ones
  } a, b;
  struct BatchAxis {
    int64_t extent, a, b, a_matrix, b_matrix;
  };  // strides in elements and in matrices
  std::vector<BatchAxis> axes;  // outermost first
  bool packs_before = false;              // B is packed in panels before the tiles, else read (and packed, where it must be) by each
  bool packed_earlier = false;            // by the product of an area before that has the same B
  int64_t packed = -1;                    // where: workspace offset
  int64_t ub = -1;                        // UB memory of multiply_column
  int64_t wide = -1;                       // UB memory of float32 sums that are not complete yet (halves)
  bool chained() const { return a.slot < 0; }
  bool narrows = false;  // chained: over the columns a mask shows
};

// The convolution of a cube area: c[m,n] of batch (image, group) = a[m,k] @ the window matrix of b[k,n]; for the gradient of the weight,
// c[m,n] of a group = the sum over images of a[m,k] @ the transposed window matrix.
struct Convolution {
  DType dtype = DType::kNone;
  bool weight = false;
  int64_t batches = 1, groups = 1, images = 1, m = 0, n = 0, k = 0;  // images: those that are summed; k: of one of them
  struct Side {
    int32_t slot = -1;
    Dims shape, strides;        // of the operand
    bool copied = false;        // read from a contiguous copy of dtype `dtype`, made before the tiles
    int64_t scratch = -1;       // its workspace offset
  } a, b;
  Window window;
  int64_t a_row = 0, a_image = 0, a_group = 0, b_image = 0, b_group = 0;  // elements
  // How tiles read the window matrix: packed block by block; as rows of planes that are copied once for all taps; or where it lies.
  enum Way : uint8_t { kPacked, kPlanes, kPlain };
  Way way = kPacked;
  int64_t ub = -1;              // UB memory for a packed block, or for planes
  // Planes (see PlaneRows): rows and pitch of one, those of the tallest tile; the phases; where each row of the matrix begins, counted from
  // the first channel of its block; UB memory for the product, whose rows have the planes' pitch (-1: it has the result's).
  int64_t plane_rows = 0, pitch = 0, wide = -1;
  std::vector<int32_t> phases_y, phases_x, offsets;
};

// A hook's place in the area's code; the hook as it was set is hooks.h's Hook.
struct HookCode {
  int kind = 0;                 // kHookStats or kHookCheck
  int64_t slot = 0;
  int32_t instr = -1;
  DType dtype = DType::kNone;
  int32_t after = -1;           // slot of a result that is complete after the area only: hooked there; -1: in the tile
  int64_t elements = 0;
};

// A strip as the kernels take it, made from the words behind its head. Operands are operand words; loop null: steps.
struct StripCode {
  struct Operand {
    uint32_t word = 0;
    int8_t side = -1;       // number of the block at the side that it is
    int8_t stream = -1;
    int64_t moves = 0;      // see StripStep
  };
  struct Step {
    StripKind kind{};
    void (*run)() = nullptr;
    Operand x, y, out;
  };
  struct Stream {
    uint32_t word;
    bool in, out;
  };
  void (*loop)(const StripArgs&) = nullptr;
  std::vector<Step> steps;
  std::vector<Stream> streams;
};

struct Profile;
struct TileLayout;

// A value in the UB of a simulated device: made by an instruction of the area (or before its tiles), read up to its last use.
struct UbBuffer {
  UbUse::Range bytes;
  DType dtype = DType::kNone;
  int32_t instr = -1;           // tensor instruction that makes it, or that it is loaded for
  int32_t slot = -1;            // it is a copy of this slot
  int32_t first = -1, last = -1; // tile instructions, indices into `uses`; first -1: made before the tiles
  bool pinned = false;          // has its place to itself for the whole area
};

// The words of an area's tiles and what they are made of beside numbers; never changed once made, near shapes share them.
struct TileWords {
  std::vector<uint64_t> prologue, words;       // each ends with a zero head
  std::vector<int32_t> prologue_instr, instr;  // tensor instruction of each word
  std::vector<StripCode> strips;
};

struct AreaCode {
  AreaKind kind = AreaKind::kVector;
  Geometry space;
  std::vector<GlobalSlot> slots;
  std::vector<ViewAxis> axes;
  struct Constant {
    double value;
    DType dtype;
  };
  std::vector<Constant> constants;
  std::vector<Join> joins;
  bool narrows = false;   // tiles shrink to the columns a mask shows
  std::vector<Product> products;
  std::vector<Convolution> convolutions;
  std::vector<HookCode> hooks;
  std::shared_ptr<const TileWords> tile;        // null for moves
  std::shared_ptr<const TileLayout> layout;     // what the words were made from; shared by near shapes, null for moves and simulated devices
  const uint64_t* prologue = nullptr;           // the same words in code pages
  const uint64_t* code = nullptr;
  int64_t ub_bytes = 0;
  int64_t ub_peak = 0;                          // without what a product packs for itself: that is not in a vector core's UB
  const Profile* profile = nullptr;             // simulated devices only
  std::vector<UbUse> uses;                      // of their instructions (words, not prologue)
  std::vector<UbBuffer> buffers;
  int64_t tile_ns = 0;                          // what finding its tiles took
  double cost_ns = 0;                           // estimate, one thread
  int move = -1;                                // instruction of a move area
  std::vector<int32_t> operands;                // its operands' slots; the result's is last
  std::vector<Dims> operand_strides;
};

}  // namespace dvm
