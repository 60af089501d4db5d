#include "workspace.h"

#include <algorithm>

#include "kernels.h"
#include "product.h"

namespace dvm {
namespace {

int64_t aligned(int64_t bytes) { return (bytes + 127) / 128 * 128; }

// Intervals in use, by offset.
class Arena {
 public:
  struct Block {
    int64_t offset, bytes;
    int last_area;
  };

  int64_t take(int64_t bytes, int last_area) {
    bytes = aligned(std::max<int64_t>(bytes, 1));
    int64_t offset = 0;
    auto at = blocks_.begin();
    for (; at != blocks_.end() && at->offset - offset < bytes; ++at) offset = at->offset + at->bytes;
    blocks_.insert(at, {offset, bytes, last_area});
    top_ = std::max(top_, offset + bytes);
    return offset;
  }
  void prolong(int64_t offset, int last_area) {
    for (Block& b : blocks_)
      if (b.offset == offset) b.last_area = last_area;
  }
  void release(int area) {
    std::erase_if(blocks_, [area](const Block& b) { return b.last_area <= area; });
  }
  int64_t top() const { return top_; }

 private:
  std::vector<Block> blocks_;
  int64_t top_ = 0;
};

// Where an area's tile code first writes and last reads a slot, in words; -1: never.
struct Touches {
  int first_write = -1, last_read = -1;
  bool same_element = false;  // the last reader reads an element where it writes one
};

Touches touches(const AreaCode& area, uint32_t slot) {
  const uint32_t operand = kGlobal | slot;
  Touches t;
  for (size_t w = 0; area.tile->words[w];) {
    const uint64_t* words = area.tile->words.data() + w;
    const Tile id = head_id(*words);
    const int at = static_cast<int>(w);
    if (head_dst(*words) == operand && t.first_write < 0) t.first_write = at;
    const bool reads = operand_a(words[1]) == operand || operand_b(words[1]) == operand || (id == Tile::kSelect && operand_a(words[2]) == operand);
    if (reads) {
      t.last_read = at;
      t.same_element = id < Tile::kSumX;
    }
    w += static_cast<size_t>(head_len(*words));
  }
  return t;
}

// Whether result slot `to` may have the memory of slot `from`: nothing else of the area reads that value, a tile reads of it what it
// writes, and never after it has begun to write.
bool may_take(const AreaCode& area, size_t to, size_t from) {
  const GlobalSlot &result = area.slots[to], &x = area.slots[from];
  const bool same_rows = area.space.rows == 1 || x.row_step == result.row_step, same_cols = area.space.cols == 1 || x.col_step == result.col_step;
  if (x.written || !x.bound || x.offset != 0 || !same_rows || !same_cols) return false;
  for (size_t o = 0; o < area.slots.size(); ++o)
    if (o != from && area.slots[o].kind == x.kind && area.slots[o].value == x.value) return false;
  const Touches made = touches(area, static_cast<uint32_t>(to)), read = touches(area, static_cast<uint32_t>(from));
  if (made.first_write < 0 || read.last_read < 0) return false;
  return read.last_read < made.first_write || (read.last_read == made.first_write && read.same_element);
}

// The slot of a dying operand of the same size whose memory result slot `to` may take, -1 if there is none.
int operand_to_replace(const AreaCode& area, size_t to, const std::vector<int64_t>& dying, int64_t bytes, const std::vector<int64_t>& bytes_of) {
  for (size_t s = 0; s < area.slots.size(); ++s) {
    const GlobalSlot& x = area.slots[s];
    if (x.kind != GlobalSlot::kWorkspace || std::find(dying.begin(), dying.end(), x.value) == dying.end()) continue;
    if (bytes_of[static_cast<size_t>(x.value)] == bytes && may_take(area, to, s)) return static_cast<int>(s);
  }
  return -1;
}

// Whether areas [first, last) have the value among their slots.
bool reads_value(const std::vector<AreaCode>& areas, int first, int last, GlobalSlot::Kind kind, int64_t value) {
  for (int a = first; a < last; ++a)
    for (const GlobalSlot& s : areas[static_cast<size_t>(a)].slots)
      if (s.kind == kind && s.value == value) return true;
  return false;
}

void take_scratch(AreaCode& area, int index, const std::vector<SharedPanels>& shared, Arena* arena, std::vector<SlotInfo>* scratch) {
  const auto take = [&](int64_t bytes, int last_area) {
    const int64_t at = arena->take(bytes, last_area);
    scratch->push_back({-1, at, bytes, index, last_area, -1});
    return at;
  };
  for (Join& j : area.joins)
    if (!j.direct) j.scratch = take(j.outer * j.parts * j.width * item_size(j.dtype), index);
  for (Product& p : area.products) {
    if (!p.packs_before || p.packed_earlier) continue;
    const auto with = std::find_if(shared.begin(), shared.end(), [&](const SharedPanels& s) { return s.packs == &p; });
    p.packed = take(p.b.matrices * panel_bytes(kernels(), p), with == shared.end() ? index : with->last_area);
    if (with == shared.end()) continue;
    for (Product* other : with->others) other->packed = p.packed;
  }
  for (Convolution& v : area.convolutions)
    for (Convolution::Side* side : {&v.a, &v.b})
      if (side->copied) side->scratch = take(side->shape.size() * item_size(v.dtype), index);
}

}  // namespace

int64_t plan_workspace(const std::vector<Lifetime>& lifetimes, const std::vector<int>& stack_end, std::vector<AreaCode>* areas, std::vector<SlotInfo>* slots,
                       std::vector<SlotInfo>* scratch) {
  int32_t values = 0;
  for (const Lifetime& l : lifetimes) values = std::max(values, l.value + 1);
  std::vector<int64_t> offset(static_cast<size_t>(values), -1), bytes_of(static_cast<size_t>(values), 0);
  for (const Lifetime& l : lifetimes) bytes_of[static_cast<size_t>(l.value)] = l.bytes;
  const std::vector<SharedPanels> shared = share_panels(areas);
  Arena arena;
  size_t next = 0;  // lifetimes come in the order of their first area
  std::vector<int> dies_at(areas->size(), -1), dies_next(lifetimes.size(), -1);  // lifetimes by last area, as lists
  for (int l = static_cast<int>(lifetimes.size()) - 1; l >= 0; --l) {
    int& head = dies_at[static_cast<size_t>(lifetimes[static_cast<size_t>(l)].last_area)];
    dies_next[static_cast<size_t>(l)] = head;
    head = l;
  }
  int first_of_stack = 0;
  for (int a = 0; a < static_cast<int>(areas->size()); ++a) {
    AreaCode& area = (*areas)[static_cast<size_t>(a)];
    if (a > 0 && stack_end[static_cast<size_t>(a)] != stack_end[static_cast<size_t>(a) - 1]) first_of_stack = a;
    std::vector<int64_t> dying;
    for (int l = dies_at[static_cast<size_t>(a)]; l >= 0; l = dies_next[static_cast<size_t>(l)]) {
      const Lifetime& dies = lifetimes[static_cast<size_t>(l)];
      if (dies.first_area < a && !reads_value(*areas, first_of_stack, a, GlobalSlot::kWorkspace, dies.value)) dying.push_back(dies.value);
    }
    for (; next < lifetimes.size() && lifetimes[next].first_area == a; ++next) {
      const Lifetime& l = lifetimes[next];
      int in_place_of = -1;
      if (!dying.empty() && area.move < 0)
        for (size_t s = 0; s < area.slots.size() && in_place_of < 0; ++s) {
          const GlobalSlot& slot = area.slots[s];
          if (slot.kind != GlobalSlot::kWorkspace || !slot.written || slot.value != l.value) continue;
          if (const int x = operand_to_replace(area, s, dying, l.bytes, bytes_of); x >= 0) in_place_of = area.slots[static_cast<size_t>(x)].value;
        }
      int64_t& at = offset[static_cast<size_t>(l.value)];
      if (in_place_of >= 0) {
        at = offset[static_cast<size_t>(in_place_of)];
        arena.prolong(at, l.last_area);
        std::erase(dying, in_place_of);
      } else {
        at = arena.take(l.bytes, l.last_area);
      }
      slots->push_back({l.value, at, l.bytes, l.first_area, l.last_area, in_place_of});
    }
    take_scratch(area, a, shared, &arena, scratch);
    for (GlobalSlot& s : area.slots)
      if (s.kind == GlobalSlot::kWorkspace) s.offset += offset[static_cast<size_t>(s.value)];
    if (stack_end[static_cast<size_t>(a)] == a + 1) arena.release(a);
  }
  return arena.top();
}

std::vector<std::pair<int32_t, int32_t>> results_over_inputs(const std::vector<AreaCode>& areas, const std::vector<int>& stack_end, int inputs) {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  int first_of_stack = 0, last_move = -1;
  std::vector<int> last_reader(static_cast<size_t>(inputs), -1);
  for (int a = 0; a < static_cast<int>(areas.size()); ++a) {
    if (areas[static_cast<size_t>(a)].move >= 0) last_move = a;
    for (const GlobalSlot& s : areas[static_cast<size_t>(a)].slots)
      if (s.kind == GlobalSlot::kValue && s.value < inputs) last_reader[static_cast<size_t>(s.value)] = a;
  }
  for (size_t a = 0; a < areas.size(); ++a) {
    const AreaCode& area = areas[a];
    const int number = static_cast<int>(a);
    if (a > 0 && stack_end[a] != stack_end[a - 1]) first_of_stack = number;
    // An index out of range ends a launch: the inputs are as they were then.
    if (number <= last_move) continue;
    for (size_t to = 0; to < area.slots.size(); ++to) {
      const GlobalSlot& result = area.slots[to];
      if (result.kind != GlobalSlot::kValue || !result.written || result.value < inputs) continue;
      for (size_t from = 0; from < area.slots.size(); ++from) {
        const GlobalSlot& x = area.slots[from];
        if (x.kind != GlobalSlot::kValue || x.value >= inputs || !may_take(area, to, from)) continue;
        const bool last = last_reader[static_cast<size_t>(x.value)] == number;
        if (last && !reads_value(areas, first_of_stack, number, GlobalSlot::kValue, x.value)) pairs.emplace_back(result.value, x.value);
      }
    }
  }
  return pairs;
}

}  // namespace dvm
