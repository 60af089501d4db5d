// Launches and snapshots on simulated devices on several threads, while another switches devices and copies go wrong.
#include <atomic>
#include <cstring>
#include <thread>

#include "copies.h"
#include "device_memory.h"
#include "device_move.h"
#include "kit.h"
#include "optable.h"
#include "snapshot.h"

namespace dvm::test {
namespace {

constexpr int64_t kCount = 300;

// 3 * x twice, the first kept by the graph and taken up again by a second flush; x is `number` throughout.
bool call(float number, int64_t hook) {
  std::vector<float> x(kCount, number);
  Dims shape;
  shape.rank = 1;
  shape[0] = kCount;
  struct Locked {  // the graph begins and ends with the lock
    std::unique_lock<std::mutex> lock{gil()};
    std::unique_ptr<Graph> graph = std::make_unique<Graph>("devices");
    ~Locked() {
      if (!lock) lock.lock();
      graph.reset();
    }
  } locked;
  Graph& g = *locked.graph;
  std::unique_lock<std::mutex>& lock = locked.lock;
  int64_t value = g.input(x.data(), DType::kF32, shape, nullptr, nullptr, "");
  for (int flush = 0; flush < 2; ++flush) {
    Instr& in = g.draft();
    in.op = Op::kMUL;
    in.operands = {static_cast<int32_t>(value), -1};
    in.imms = {{3.0, 3, false}};
    value = g.record(false);
    Graph::Flush f = g.flush({value}, {}, nullptr, nullptr);
    lock.unlock();
    try {
      f.launch->run();
    } catch (const UserError&) { return false; }
    if (hook && flush == 0) {
      Hook h;
      h.kind = kHookCapture;
      h.id = hook;
      h.limit = 1 << 20;
      f.launch->program->change_hooks({}, {h});
    }
    lock.lock();
    g.finish(f);
  }
  lock.unlock();
  Value found;
  try {
    found = host_value(g.node(value).memory);
  } catch (const UserError&) { return false; }
  for (int64_t i = 0; i < kCount; ++i) CHECK(static_cast<const float*>(found.data)[i] == 9 * number, "a result is wrong");
  return true;
}

}  // namespace

DVM_SCENARIO(devices) {
  set_copy_timeout(200);
  set_snapshot_timeout(5, 50);
  for (const char* kind : {"fail", "stall", "lose"})
    for (const char* of : {"snapshot", "move"}) plant_fault({kind, of, 0, 10, 0.01, 7});
  plant_fault({"memory", "move", 0, 0, 0.05, 8});
  std::atomic<bool> over{false};
  std::atomic<int> done{0};
  std::thread switching([&] {
    for (int i = 0; !over; ++i) {
      const Profile& to = profile_at(i % 3);
      DeviceMove move(to);
      try {
        move.copy();
      } catch (const UserError&) { continue; }
      use_profile(to);
      move.commit();
    }
  });
  std::vector<std::thread> workers;
  for (int w = 0; w < 3; ++w)
    workers.emplace_back([&, w] {
      for (int i = 0; i < 150 * effort; ++i) done += call(static_cast<float>(w * 1000 + i), w == 0 && i == 0 ? 5 : 0);
    });
  for (std::thread& worker : workers) worker.join();
  over = true;
  switching.join();
  CHECK(done > 0, "no call went through");
  clear_faults();
  synchronize_snapshots();
  int64_t dropped = 0, published = 0;
  for (const HookEvent& event : take_events(1 << 20, &dropped)) {
    if (!event.placeholder.empty()) continue;
    ++published;
    float first, other;
    std::memcpy(&first, event.data->data, sizeof first);
    for (size_t i = 0; i < event.bytes(); i += sizeof first) {
      std::memcpy(&other, static_cast<char*>(event.data->data) + i, sizeof first);
      CHECK(other == first, "a snapshot is of several launches");
    }
  }
  CHECK(published > 0, "no snapshot was published");
  for (const ProgramPtr& p : all_programs()) p->clear_hooks();
  use_profile(profile_at(0));
  set_snapshot_timeout(100);
  set_copy_timeout(5000);
}

}  // namespace dvm::test
