#include "ubcheck.h"

#include <algorithm>

namespace dvm {
namespace {

bool holds(const UbUse::Range& r) { return r.to > r.from; }

void move_to(UbUse::Range* range, uint32_t operand) {
  if (!holds(*range) || (operand & kGlobal)) return;  // neither a slot nor a vector lies in the UB
  const int64_t size = range->to - range->from;
  range->from = static_cast<int64_t>(operand) * kUbUnit;
  range->to = range->from + size;
}

// Who wrote each run of bytes last.
class Writers {
 public:
  void write(const UbUse::Range& range, int use, int buffer) {
    std::vector<Run> kept;
    for (const Run& r : runs_) {
      if (!r.bytes.meets(range)) {
        kept.push_back(r);
        continue;
      }
      if (r.bytes.from < range.from) kept.push_back({{r.bytes.from, range.from}, r.use, r.buffer});
      if (r.bytes.to > range.to) kept.push_back({{range.to, r.bytes.to}, r.use, r.buffer});
    }
    kept.push_back({range, use, buffer});
    runs_ = std::move(kept);
  }

  // Whether every byte of `range` holds `buffer`; else the first run that does not, and who wrote it.
  bool holds_all(const UbUse::Range& range, int buffer, UbUse::Range* wrong, int* over) const {
    int64_t covered = 0;
    for (const Run& r : runs_) {
      if (!r.bytes.meets(range)) continue;
      const UbUse::Range common{std::max(r.bytes.from, range.from), std::min(r.bytes.to, range.to)};
      covered += common.to - common.from;
      if (r.buffer == buffer) continue;
      *wrong = common;
      *over = r.use;
      return false;
    }
    *wrong = range;
    *over = -1;
    return covered == range.to - range.from;
  }

 private:
  struct Run {
    UbUse::Range bytes;
    int use, buffer;
  };
  std::vector<Run> runs_;
};

}  // namespace

std::vector<UbUse> uses_in_force(const AreaCode& area) {
  std::vector<UbUse> uses = area.uses;
  for (UbUse& use : uses) {
    const uint64_t* w = area.code + use.word;
    move_to(&use.write, head_dst(w[0]));
    move_to(&use.read[0], operand_a(w[1]));
    move_to(&use.read[1], operand_b(w[1]));
    if (head_id(w[0]) == Tile::kSelect) move_to(&use.read[2], operand_a(w[2]));
  }
  return uses;
}

// Two tiles, so that what the prologue made and a later instruction writes over is missed in the second.
std::vector<Overwrite> find_overwrites(const AreaCode& area, const std::vector<UbUse>& uses) {
  Writers writers;
  std::vector<int> maker(area.buffers.size(), -1);
  for (size_t b = 0; b < area.buffers.size(); ++b)
    if (area.buffers[b].first < 0) writers.write(area.buffers[b].bytes, -1, static_cast<int>(b));
  std::vector<Overwrite> found;
  for (int tile = 0; tile < 2; ++tile)
    for (int u = 0; u < static_cast<int>(uses.size()); ++u) {
      const UbUse& use = uses[static_cast<size_t>(u)];
      for (size_t k = 0; k < 3; ++k) {
        UbUse::Range wrong;
        int over = -1;
        if (!holds(use.read[k]) || use.takes[k] < 0 || writers.holds_all(use.read[k], use.takes[k], &wrong, &over)) continue;
        const Overwrite o{maker[static_cast<size_t>(use.takes[k])], over, u, wrong};
        const auto same = [&](const Overwrite& other) { return other.reader == o.reader && other.over == o.over; };
        if (std::none_of(found.begin(), found.end(), same)) found.push_back(o);
      }
      if (!holds(use.write) || use.makes < 0) continue;
      writers.write(use.write, u, use.makes);
      maker[static_cast<size_t>(use.makes)] = u;
    }
  return found;
}

std::vector<Alias> find_aliases(const std::vector<UbUse>& uses) {
  std::vector<Alias> found;
  for (size_t u = 0; u < uses.size(); ++u)
    for (const UbUse::Range& r : uses[u].read) {
      const UbUse::Range& w = uses[u].write;
      if (!holds(r) || !holds(w) || !r.meets(w) || (r.from == w.from && r.to == w.to)) continue;
      found.push_back({static_cast<int>(u), {std::max(r.from, w.from), std::min(r.to, w.to)}});
    }
  return found;
}

std::vector<int> find_unstored(const AreaCode& area) {
  if (area.move >= 0) return {};
  std::vector<bool> stored(area.slots.size(), false);
  for (const uint64_t* w = area.code; *w; w += head_len(*w))
    if (is_global(head_dst(*w))) stored[head_dst(*w) & (kGlobal - 1)] = true;
  for (const Join& j : area.joins) stored[static_cast<size_t>(j.result)] = true;
  std::vector<int> found;
  for (size_t s = 0; s < area.slots.size(); ++s)
    if (area.slots[s].written && !stored[s]) found.push_back(static_cast<int>(s));
  return found;
}

// An operand that its reader writes over is that reader's result.
std::vector<int> live_at(const AreaCode& area, int at) {
  std::vector<int> live;
  const int made = area.uses.empty() ? -1 : area.uses[static_cast<size_t>(at)].makes;
  for (int b = 0; b < static_cast<int>(area.buffers.size()); ++b) {
    const UbBuffer& buffer = area.buffers[static_cast<size_t>(b)];
    const bool replaced = made >= 0 && b != made && buffer.last == at && buffer.bytes.meets(area.buffers[static_cast<size_t>(made)].bytes);
    if (buffer.pinned || (buffer.first <= at && at <= buffer.last && !replaced)) live.push_back(b);
  }
  return live;
}

int fullest(const AreaCode& area) {
  int at = 0;
  int64_t most = -1;
  for (int u = 0; u < static_cast<int>(area.uses.size()); ++u) {
    int64_t bytes = 0;
    for (const int b : live_at(area, u)) bytes += area.buffers[static_cast<size_t>(b)].bytes.to - area.buffers[static_cast<size_t>(b)].bytes.from;
    if (bytes <= most) continue;
    most = bytes;
    at = u;
  }
  return at;
}

}  // namespace dvm
