// Which instructions are an optimizer's update that has a loop of its own. They are compared by what flows between them, not by registers.
#include <algorithm>

#include "encoder.h"
#include "strip.h"

namespace dvm {

bool is_update(const UpdateLoop& update, const TileOp* first) {
  int32_t streams[kMostStreams];
  int stream_count = 0;
  const auto ref_of = [&](int32_t reg, int before) {
    if (reg < 0) return kUpdateNone;
    for (int k = 0; k < before; ++k)
      if (first[k].dst == reg) return static_cast<int8_t>(k);
    const auto at = static_cast<int>(std::find(streams, streams + stream_count, reg) - streams);
    if (at == stream_count) {
      if (stream_count == kMostStreams) return kUpdateNone;
      streams[stream_count++] = reg;
    }
    return static_cast<int8_t>(kUpdateIn + at);
  };
  for (int k = 0; k < update.count; ++k) {
    const TileOp& op = first[k];
    const UpdateStep& step = update.steps[k];
    if (op.id != static_cast<Tile>(step.op) || op.dtype != DType::kF32 || op.c >= 0 || step.stored != (op.to == TileOp::kPlace)) return false;
    const bool exchanged = op.form == Form::kST && (step.op == Op::kADD || step.op == Op::kMUL);
    if (op.form != Form::kTT && op.form != Form::kTS && !exchanged) return false;
    const int8_t x = ref_of(exchanged ? op.b : op.a, k), y = op.form == Form::kTT ? ref_of(op.b, k) : kUpdateOne;
    if (x != step.x || y != step.y) return false;
  }
  return true;
}

const UpdateLoop* update_of(const TileOp* first, int32_t count) {
  const UpdateLoop* updates = strip_kernels().updates;
  const UpdateLoop* end = updates + strip_kernels().update_count;
  const auto found = std::find_if(updates, end, [&](const UpdateLoop& u) { return u.count == count && is_update(u, first); });
  return found == end ? nullptr : found;
}

}  // namespace dvm
