#include "stack.h"

#include <algorithm>

namespace dvm {
namespace {

// Starting and ending a piece of work costs less than 3 % of more than this, and the memory of a large area is better free for the next.
constexpr double kLargestNs = 40'000;

bool may_stack(const AreaCode& a) { return a.move < 0 && a.cost_ns <= kLargestNs; }

bool in_memory(const GlobalSlot& s) { return s.kind == GlobalSlot::kValue || s.kind == GlobalSlot::kWorkspace; }

// Values that the areas of a stack make, ascending.
class Made {
 public:
  void clear() { values_.clear(); }
  void add(const AreaCode& area) {
    for (const GlobalSlot& s : area.slots)
      if (s.written && in_memory(s)) values_.insert(std::lower_bound(values_.begin(), values_.end(), s.value), s.value);
  }
  bool read_by(const AreaCode& area) const {
    return std::any_of(area.slots.begin(), area.slots.end(),
                       [this](const GlobalSlot& s) { return !s.written && in_memory(s) && std::binary_search(values_.begin(), values_.end(), s.value); });
  }

 private:
  std::vector<int32_t> values_;
};

}  // namespace

std::vector<int> stack(const std::vector<AreaCode>& areas) {
  const int count = static_cast<int>(areas.size());
  std::vector<int> end(areas.size());
  Made made;
  for (int first = 0; first < count;) {
    int last = first + 1;
    made.clear();
    if (const AreaCode& area = areas[static_cast<size_t>(first)]; may_stack(area)) {
      made.add(area);
      for (; last < count && last - first < kLongestStack; ++last) {
        const AreaCode& next = areas[static_cast<size_t>(last)];
        if (!may_stack(next) || made.read_by(next)) break;
        made.add(next);
      }
    }
    std::fill(end.begin() + first, end.begin() + last, last);
    first = last;
  }
  return end;
}

}  // namespace dvm
