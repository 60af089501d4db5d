// The encoder of one area at work; encode.cc has operands, slots, registers and words, lower.cc the instructions.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "encode.h"
#include "tile.h"

namespace dvm {

class Encoder {
 public:
  Encoder(const EncodeInput& in, int area);
  AreaCode run();
  AreaCode run_move();

 private:
  // An operand of a tile instruction: a result of the area (by instruction), an external, or a register.
  struct Ref {
    int32_t instr = -1, external = -1, reg = -1;
  };

  const Access& access(int32_t value) const { return in_.fusing.resolved.access[value]; }
  bool made_here(int32_t root) const;
  bool is_immediate(int32_t root) const;
  DType operand_dtype(const Instr& in) const;
  void collect(int i);
  Ref literal(int i, DType dtype);
  Ref operand(int i, size_t k, int64_t scale);

  GlobalSlot root_slot(int32_t root) const;
  int32_t add_slot(const GlobalSlot& s);
  int32_t memory_slot(int32_t value);
  int32_t constant_slot(double value, DType dtype);
  int32_t add_register(Span span, DType dtype, int32_t slot = -1);
  int32_t result_register(int i, Span span);
  void find_mask(const std::vector<size_t>& first_ref);
  bool is_run(Span span) const;
  bool used_in_place(const External& e) const;
  int32_t external(int32_t index, int32_t instr, int32_t into = -1);
  int32_t register_of(int i) const;
  int32_t once(int i);
  int32_t ref(const Ref& r, int32_t instr) { return r.reg >= 0 ? r.reg : r.external >= 0 ? external(r.external, instr) : register_of(r.instr); }
  int32_t widen(int32_t reg, Span span, int32_t instr, int32_t into = -1);
  int32_t cast(int32_t reg, DType to, int32_t instr, int32_t into = -1);
  void emit(const TileOp& op) { ops_.push_back(op); }

  void lower(int i, const Ref* refs);
  void count_loads();
  void lower_unary(int i, const Ref& a, int32_t dst, Span span);
  void lower_random(int i, int32_t dst, Span span);
  void lower_copy(int i, const Ref& a, int32_t dst, Span span);
  void lower_binary(int i, const Ref* refs, int32_t dst, Span span);
  void lower_select(int i, const Ref* refs, int32_t dst, Span span);
  void lower_reduction(int i, const Ref& a, int32_t dst);
  void lower_join(int i, const Ref& a);
  void lower_matmul(int i, int32_t dst);
  void lower_chained(int i, const Ref& a);
  const Product& next_product() { return out_.products[static_cast<size_t>(products_++)]; }
  void lower_convolution(int i, int32_t dst);
  bool hooked(int i) const;
  void hooks_in_tile(int i, int32_t reg, Span span);
  void hooks_after(int i, int32_t slot);

  const AreaCode* near(const TileRoom& room) const;
  void lay_out(const TileRoom& room);
  void form_strips();
  void widen_tiles();
  StripCode make_strip(const TileOp* ops, int32_t count) const;
  int loop_at(TileOp* first, TileOp* end, const std::vector<int32_t>& uses) const;

  void pin_buffers();
  void list_buffers();
  void order_pipes();
  UbUse::Range bytes_of(int32_t reg) const;

  uint32_t operand_word(int32_t reg) const;
  void pack(const std::vector<TileOp>& ops, std::vector<uint64_t>* words, std::vector<int32_t>* instr) const;

  const EncodeInput& in_;
  const ProgramCode& code_;
  const int inputs_, area_index_;
  const Area& area_;
  TileSpace space_;
  AreaCode out_;
  std::vector<Ref> refs_;                              // operands of all instructions, in order
  std::vector<Register> registers_;
  std::vector<int32_t> external_register_;             // -1: not used yet
  std::vector<std::pair<int, int32_t>> results_;       // instruction, its register
  std::vector<std::pair<int, int32_t>> once_;          // instruction, the register of its one element
  std::vector<std::pair<int32_t, int32_t>> widened_;   // register, the same repeated over the tile
  std::vector<TileOp> prologue_, ops_;
  int32_t products_ = 0;                               // lowered so far
  int32_t strips_ = 0;
  std::optional<int32_t> store_after_;                 // slot of a result that is copied out after it was made
};

}  // namespace dvm
