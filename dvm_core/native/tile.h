// The iteration space of an area: axes, rows and columns, tile sizes, and what each operand from memory is to a tile. Then UB addresses.
#pragma once
#include <vector>

#include "areacode.h"

namespace dvm {

// An operand from memory as the tiles see it.
struct External {
  int32_t root = -1;        // local value id; a literal immediate: -1
  int32_t immediate = -1;   // instruction whose immediate it is, -1: memory
  int64_t offset = 0;       // elements
  DType dtype = DType::kNone;
  int64_t stride[Bounds::kMax] = {};  // per axis of the space, innermost first, elements
  // Found by TileSpace::finish:
  Span span = Span::kFull;  // elements it has: full, one per row, one row for all, or one for all
  bool contiguous = false;  // those elements lie one after the other
};

class TileSpace {
 public:
  explicit TileSpace(const Area& area);

  // An operand with these strides over `shape`, whose innermost axis covers `scale` elements of the space. The same operand twice is one.
  int add(const External& base, const Dims& shape, const Dims& strides, int64_t scale);

  // Chooses columns where the area leaves them open, tile sizes, and classifies the operands. tile_elements 0: automatic. product: of a
  // cube area, else null.
  void finish(const Area& area, const Product* product, int64_t tile_elements);
  void finish(const Area& area, const Convolution& convolution, int64_t tile_elements);

  // Slot fields of an operand for load_view (axes appended to `axes`), or of one that is used in place.
  void describe(const External& e, bool bound, GlobalSlot* slot, std::vector<ViewAxis>* axes) const;

  std::vector<External> externals;
  Geometry geometry;

 private:
  void fold(int64_t boundary);
  void begin(const Area& area);
  void end(const Area& area);
  void convolution_tiles(const Area& area, const Convolution& v, int64_t tile_elements);
  void cube_tiles(const Area& area, const Product& p, int64_t tile_elements);
  void vector_tiles(const Area& area, int64_t tile_elements);
  bool crosses_rows() const;
  void choose_columns();
  int64_t cost_of(int column_axes) const;
  void classify(External* e, int column_axes) const;
  int axes_below(int64_t cols) const;

  int axes_ = 0;
  int64_t extent_[Bounds::kMax];  // innermost first
};

// A result in the tile code under construction.
struct Register {
  int32_t slot = -1;         // global slot; -1: lives in the UB
  Span span = Span::kFull;
  DType dtype = DType::kNone;
  bool pinned = false;       // keeps its place for the whole area: made by the prologue, or a buffer that another pipe fills or empties
  int64_t address = -1;      // UB bytes
  bool in_strip = false;     // never leaves a strip: needs no place
  bool same_but_address(const Register& o) const {
    return slot == o.slot && span == o.span && dtype == o.dtype && pinned == o.pinned && in_strip == o.in_strip;
  }
};

struct TileOp {
  Tile id;
  Form form = Form::kTT;
  Span span = Span::kFull;
  DType dtype = DType::kNone, from = DType::kNone;
  int32_t dst = -1, a = -1, b = -1, c = -1;  // registers
  int32_t number = -1;                       // of a join, product or hook
  int32_t instr = -1;
  uint64_t sync = 0;                         // its sync word
  int32_t behind = 0;                        // head of a strip: instructions that belong to it
  // In a strip: where operands and result are, kPlace: where their register lies.
  static constexpr int8_t kPlace = -1, kLast = 0;  // the result of the instruction before; above: a block at the side, by number
  int8_t from_a = kPlace, from_b = kPlace, to = kPlace;
  bool operator==(const TileOp&) const = default;
};

// Elements that a register of each span has room for.
struct TileRoom {
  int64_t full = 0, rows = 0, cols = 0;
  bool holds(const TileRoom& o) const { return full >= o.full && rows >= o.rows && cols >= o.cols; }
};
TileRoom room_of(const Geometry& g);
TileRoom with_slack(const TileRoom& room);  // for the tiles of near shapes as well

// Tile code before it is words, its registers with addresses. Any area that is lowered to the same operations, and whose tiles it has room
// for, may run its words: what depends on shapes lies in the tables beside them.
struct TileLayout {
  std::vector<TileOp> prologue, ops;
  std::vector<Register> registers;
  TileRoom room;
  int64_t ub_bytes = 0;
};

// Bytes of a register in the UB.
int64_t register_bytes(const Register& r, const TileRoom& room);

// Gives every UB register an address: a slot is free again after its last use, an elementwise result takes the place of an operand that
// dies with it. Pinned registers share with nobody. Returns the bytes needed.
int64_t allocate_ub(const std::vector<TileOp>& prologue, const std::vector<TileOp>& ops, std::vector<Register>* registers, const TileRoom& room);

}  // namespace dvm
