#include "sync.h"

#include <algorithm>
#include <array>

#include "profile.h"

namespace dvm {
namespace {

constexpr int kForwardEvents = kEvents - 1;  // the last one orders tiles

UbUse::Range common(const UbUse::Range& a, const UbUse::Range& b) { return {std::max(a.from, b.from), std::min(a.to, b.to)}; }

// The bytes two uses share, one of them writing, and what that is called.
const char* conflict(const UbUse& first, const UbUse& second, UbUse::Range* bytes) {
  const auto with = [&](const UbUse::Range& a, const UbUse::Range& b, const char* kind) -> const char* {
    if (!a.meets(b)) return nullptr;
    *bytes = common(a, b);
    return kind;
  };
  for (const UbUse::Range& r : second.read)
    if (const char* kind = with(first.write, r, "read after write")) return kind;
  for (const UbUse::Range& r : first.read)
    if (const char* kind = with(r, second.write, "write after read")) return kind;
  return with(first.write, second.write, "write after write");
}

struct Edge {
  int from, to;
};

// The instructions of pipe p before (or, between tiles, anywhere) that must be over when j begins: the last of them will do.
int last_before(const std::vector<UbUse>& uses, int j, Pipe p, int end) {
  for (int i = end - 1; i >= 0; --i)
    if (uses[static_cast<size_t>(i)].pipe == p && uses[static_cast<size_t>(i)].conflicts(uses[static_cast<size_t>(j)])) return i;
  return -1;
}

// What one pipe has to hear from another within a tile: ascending on both sides, and no more than there are events. Neighbours are joined:
// the first that waits waits for the last that is waited for.
std::vector<Edge> within_tile(const std::vector<UbUse>& uses, Pipe from, Pipe to) {
  std::vector<Edge> edges;
  int heard = -1;
  for (int j = 0; j < static_cast<int>(uses.size()); ++j) {
    if (uses[static_cast<size_t>(j)].pipe != to) continue;
    const int i = last_before(uses, j, from, j);
    if (i <= heard) continue;
    edges.push_back({i, j});
    heard = i;
  }
  const int count = static_cast<int>(edges.size());
  if (count <= kForwardEvents) return edges;
  std::vector<Edge> joined;
  for (int e = 0; e < kForwardEvents; ++e) {
    const int first = count * e / kForwardEvents, last = count * (e + 1) / kForwardEvents - 1;
    joined.push_back({edges[static_cast<size_t>(last)].from, edges[static_cast<size_t>(first)].to});
  }
  return joined;
}

// One event for all: the first instruction that must wait for the tile before, for the last one that it or a later one must wait for. From
// the first wait within the tile on, the other pipe is past the tile before.
Edge between_tiles(const std::vector<UbUse>& uses, Pipe from, Pipe to, const std::vector<Edge>& within) {
  Edge edge{-1, -1};
  const int n = static_cast<int>(uses.size()), heard = within.empty() ? n : within.front().to;
  for (int j = 0; j < heard; ++j) {
    if (uses[static_cast<size_t>(j)].pipe != to) continue;
    const int i = last_before(uses, j, from, n);
    if (i < 0) continue;
    if (edge.to < 0) edge.to = j;
    edge.from = std::max(edge.from, i);
  }
  return edge;
}

}  // namespace

bool UbUse::conflicts(const UbUse& later) const {
  Range bytes;
  return conflict(*this, later, &bytes) != nullptr;
}

std::vector<uint64_t> order_pipes(const std::vector<UbUse>& uses) {
  std::vector<uint64_t> sync(uses.size(), 0);
  for (int p = 0; p < kPipes; ++p)
    for (int q = 0; q < kPipes; ++q) {
      if (p == q) continue;
      const auto from = static_cast<Pipe>(p), to = static_cast<Pipe>(q);
      int event = 0;
      const std::vector<Edge> within = within_tile(uses, from, to);
      for (const Edge& e : within) {
        sync[static_cast<size_t>(e.from)] |= sync_bits(Sync::kSet, to, event);
        sync[static_cast<size_t>(e.to)] |= sync_bits(Sync::kWait, from, event);
        ++event;
      }
      if (const Edge e = between_tiles(uses, from, to, within); e.to >= 0) {
        sync[static_cast<size_t>(e.from)] |= sync_bits(Sync::kBackSet, to, kForwardEvents);
        sync[static_cast<size_t>(e.to)] |= sync_bits(Sync::kBackWait, from, kForwardEvents);
      }
    }
  // The simd pipe starts the next instruction before the last one is over, unless there is a barrier between them.
  int barrier = -1;
  for (int j = 0; j < static_cast<int>(uses.size()); ++j) {
    if (uses[static_cast<size_t>(j)].pipe != Pipe::kSimd) continue;
    if (barrier < 0 || last_before(uses, j, Pipe::kSimd, j) >= barrier) {
      sync[static_cast<size_t>(j)] |= kBarrier;
      barrier = j;
    }
  }
  return sync;
}

namespace {

// Two tiles of a core as its pipes run them: each node (an instruction of a tile) with the nodes that set the events it waits for.
class Schedule {
 public:
  Schedule(const std::vector<UbUse>& uses, const std::vector<uint64_t>& sync) : uses_(uses), sync_(sync), n_(static_cast<int>(uses.size())) {
    waited.resize(static_cast<size_t>(2 * n_));
    while (static_cast<int>(order.size()) < 2 * n_) {
      const size_t before = order.size();
      for (int p = 0; p < kPipes; ++p) run(static_cast<Pipe>(p));
      if (order.size() == before) break;  // the pipes wait for each other: what is left has no order
    }
  }

  std::vector<int> order;
  std::vector<std::vector<int>> waited;

 private:
  // As far as the pipe gets.
  void run(Pipe pipe) {
    int& at = at_[static_cast<size_t>(pipe)];
    for (; at < 2 * n_; ++at) {
      if (uses_[static_cast<size_t>(at % n_)].pipe != pipe) continue;
      const uint64_t word = sync_[static_cast<size_t>(at % n_)];
      if (!ready(pipe, at, word)) return;
      for (int q = 0; q < kPipes; ++q)
        for (const Sync field : {Sync::kSet, Sync::kBackSet}) {
          const int event = sync_event(word, field, static_cast<Pipe>(q));
          if (event >= 0 && (field == Sync::kSet || at < n_)) set(pipe, static_cast<Pipe>(q), event).push_back(at);
        }
      order.push_back(at);
    }
  }

  bool ready(Pipe pipe, int node, uint64_t word) {
    std::vector<int> setters;
    for (int p = 0; p < kPipes; ++p)
      for (const Sync field : {Sync::kWait, Sync::kBackWait}) {
        const int event = sync_event(word, field, static_cast<Pipe>(p));
        if (event < 0 || (field == Sync::kBackWait && node < n_)) continue;
        const std::vector<int>& by = set(static_cast<Pipe>(p), pipe, event);
        if (by.empty()) return false;
        setters.push_back(by.front());
      }
    for (int p = 0; p < kPipes; ++p)
      for (const Sync field : {Sync::kWait, Sync::kBackWait})
        if (const int event = sync_event(word, field, static_cast<Pipe>(p)); event >= 0 && (field == Sync::kWait || node >= n_)) {
          std::vector<int>& by = set(static_cast<Pipe>(p), pipe, event);
          by.erase(by.begin());
        }
    waited[static_cast<size_t>(node)] = std::move(setters);
    return true;
  }

  std::vector<int>& set(Pipe from, Pipe to, int event) { return set_[static_cast<size_t>(from)][static_cast<size_t>(to)][static_cast<size_t>(event)]; }

  const std::vector<UbUse>& uses_;
  const std::vector<uint64_t>& sync_;
  const int n_;
  std::array<int, kPipes> at_{};
  std::array<std::array<std::array<std::vector<int>, kEvents>, kPipes>, kPipes> set_;  // [from][to][event]: who set it and was not waited for yet
};

}  // namespace

// over[x]: the nodes that are over when x begins. Copies of one pipe are done in order; simd instructions overlap up to a barrier. An event
// is set when its instruction, and all before it in its pipe, are over.
std::vector<Race> find_races(const std::vector<UbUse>& uses, const std::vector<uint64_t>& sync) {
  const int n = static_cast<int>(uses.size());
  const auto use = [&](int node) -> const UbUse& { return uses[static_cast<size_t>(node % n)]; };
  const Schedule schedule(uses, sync);
  std::vector<std::vector<bool>> over(static_cast<size_t>(2 * n), std::vector<bool>(static_cast<size_t>(2 * n), false));
  std::array<int, kPipes> last{-1, -1, -1};
  for (const int node : schedule.order) {
    std::vector<bool>& mine = over[static_cast<size_t>(node)];
    const auto learn = [&](int from) {
      for (size_t k = 0; k < mine.size(); ++k) mine[k] = mine[k] || over[static_cast<size_t>(from)][k];
    };
    const auto all_of = [&](Pipe pipe, int end) {
      for (int k = 0; k < end; ++k)
        if (use(k).pipe == pipe) mine[static_cast<size_t>(k)] = true;
    };
    const Pipe pipe = use(node).pipe;
    if (const int before = last[static_cast<size_t>(pipe)]; before >= 0) learn(before);
    if (pipe != Pipe::kSimd || (sync[static_cast<size_t>(node % n)] & kBarrier)) all_of(pipe, node);
    for (const int setter : schedule.waited[static_cast<size_t>(node)]) {
      learn(setter);
      all_of(use(setter).pipe, setter + 1);
    }
    last[static_cast<size_t>(pipe)] = node;
  }
  // Pairs of the second tile are those of the first.
  std::vector<Race> races;
  for (int first = 0; first < n; ++first)
    for (int second = 0; second < 2 * n; ++second) {
      if (second <= first) continue;
      UbUse::Range bytes;
      const char* kind = conflict(use(first), use(second), &bytes);
      if (kind && !over[static_cast<size_t>(second)][static_cast<size_t>(first)]) races.push_back({kind, first, second % n, second / n, bytes});
    }
  return races;
}

}  // namespace dvm
