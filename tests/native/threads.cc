// Launches on several threads at once, while a debugger sets hooks, looks at programs, reads the memory log and changes the pool.
#include <atomic>
#include <condition_variable>
#include <thread>

#include "optable.h"
#include "pool.h"
#include "random_graph.h"
#include "snapshot.h"
#include "warm.h"

namespace dvm::test {
namespace {

// One call of a captured function: what Python does under its lock, done under ours.
std::vector<uint8_t> call(const RandomGraph& program, const std::string& name, StopHandler stop) {
  std::unique_lock lock(gil());
  auto g = std::make_unique<Graph>(name);
  add_inputs(*g, program);
  record(*g, program, 0, program.count());
  const int64_t wanted = program.values() - 1;
  Graph::Flush f = g->flush({wanted}, {}, nullptr, std::move(stop));
  lock.unlock();
  if (f.launch) f.launch->run();
  lock.lock();
  g->finish(f);
  std::vector<uint8_t> bytes = bytes_of(*g, wanted);
  g.reset();
  return bytes;
}

std::vector<RandomGraph> some_programs() {
  std::vector<RandomGraph> programs;
  for (uint64_t seed = 1; programs.size() < 6; ++seed) {
    RandomGraph p = random_graph(seed + 5000, 10);
    if (p.count() < 8) continue;
    try {
      call(p, "some", nullptr);
    } catch (const UserError&) { continue; }
    programs.push_back(std::move(p));
  }
  return programs;
}

void look_around(Random& r) {
  const auto programs = all_programs();
  const ProgramPtr p = programs.empty() ? nullptr : r.pick(programs);
  switch (r.below(11)) {
    case 0: set_pool_threads(1 + static_cast<int>(r.below(3))); break;
    case 1: memory_log(r.chance(0.7)); break;
    case 2: memory_events(0); break;
    case 3: selector_stats(); break;
    case 9: know_shapes(shapes_used(16)); break;
    case 10: set_clusters(r.chance(0.7)); break;
    case 4: trim_memory(); break;
    case 5: {
      int64_t dropped = 0;
      take_events(100, &dropped);
      break;
    }
    case 6:
      if (p) {
        const auto count = static_cast<int64_t>(p->code()->instrs.size());
        Hook h;
        h.instruction = static_cast<int>(r.below(count));
        h.kind = r.chance(0.5) ? kHookStats : kHookCapture;
        h.id = 1;
        h.every = 1 + r.below(2);
        h.limit = 1 << 20;
        h.first = p->launches.load();
        p->change_hooks({}, {h});
      }
      break;
    case 7:
      for (const ProgramPtr& each : programs) each->clear_hooks();
      break;
    default:
      if (p) {
        const SegmentView& seen = view(*p->unhooked()->segment);
        for (size_t a = 0; a < seen.areas.size(); ++a) tile_text(*p->unhooked()->segment, static_cast<int>(a));
        for (const SegmentPtr& s : p->last().segments) CHECK(view(*s->segment).areas.size() < 1000, "areas");
      }
  }
}

}  // namespace

DVM_SCENARIO(threads) {
  const std::vector<RandomGraph> programs = some_programs();
  std::vector<std::vector<uint8_t>> want;
  for (const RandomGraph& p : programs) want.push_back(call(p, "shared", nullptr));
  std::atomic<bool> done{false};
  std::thread debugger([&] {
    Random r(7);
    while (!done.load()) look_around(r);
  });
  std::vector<std::thread> workers;
  for (int t = 0; t < 3; ++t)
    workers.emplace_back([&, t] {
      Random r(static_cast<uint64_t>(t) + 11);
      for (int i = 0; i < 2000 * effort; ++i) {
        const auto n = static_cast<size_t>(r.below(static_cast<int64_t>(programs.size())));
        // Every thread's own function, or one that all share.
        CHECK(call(programs[n], r.chance(0.5) ? "shared" : "own " + std::to_string(t), nullptr) == want[n], "program " + std::to_string(n));
      }
    });
  for (std::thread& w : workers) w.join();
  done.store(true);
  debugger.join();
  for (const ProgramPtr& p : all_programs()) p->clear_hooks();
  memory_log(false);
  set_pool_threads(0);
  synchronize_snapshots();
}

DVM_SCENARIO(stops) {
  const std::vector<RandomGraph> programs = some_programs();
  for (int round = 0; round < 100 * effort; ++round) {
    const RandomGraph& program = programs[static_cast<size_t>(round) % programs.size()];
    const std::string name = "stopped " + std::to_string(round);
    const auto want = call(program, name, nullptr);
    const ProgramPtr captured = all_programs().back();
    for (const int instruction : {1, program.count() / 2}) {
      Hook h;
      h.instruction = instruction;
      h.kind = kHookStop;
      h.id = instruction;
      captured->change_hooks({}, {h});
    }
    std::mutex mutex;
    std::condition_variable changed;
    Launch* stopped = nullptr;
    bool over = false;
    int stops = 0;
    // The agent's thread: goes on step by step and looks at values while the launching thread waits.
    std::thread agent([&] {
      std::unique_lock lock(mutex);
      for (;;) {
        changed.wait(lock, [&] { return stopped || over; });
        if (over) return;
        for (int i = stopped->next(); i <= std::min(stopped->count(), stopped->next() + 2); ++i) stopped->run_until(i);
        const auto code = captured->code();
        for (int v = 0; v < code->value_of(stopped->count()); ++v) {
          LeasePtr lease;
          const Value value = stopped->value(v, &lease);
          CHECK(!value.data || value.shape.size() >= 0, "a value");
        }
        stopped = nullptr;
        changed.notify_all();
      }
    });
    const StopHandler stop = [&](Launch& launch, int, const char*, const std::vector<int64_t>& ids) {
      std::unique_lock lock(mutex);
      CHECK(!ids.empty(), "a stop of no hook");
      ++stops;
      stopped = &launch;
      changed.notify_all();
      changed.wait(lock, [&] { return !stopped; });
    };
    CHECK(call(program, name, stop) == want, name + ": other bits");
    CHECK(stops >= 1, name + ": never stopped");
    {
      std::lock_guard lock(mutex);
      over = true;
    }
    changed.notify_all();
    agent.join();
    captured->clear_hooks();
  }
}

DVM_SCENARIO(checks_and_snapshots) {
  const std::vector<RandomGraph> programs = some_programs();
  set_check_mask(3);
  int reported = 0;
  for (int round = 0; round < 200 * effort; ++round) {
    const RandomGraph& program = programs[static_cast<size_t>(round) % programs.size()];
    const StopHandler stop = [&](Launch& launch, int instruction, const char*, const std::vector<int64_t>&) {
      ++reported;
      CHECK(instruction >= 0 && instruction < launch.count(), "no such instruction");
    };
    call(program, "checked", stop);
    const ProgramPtr captured = all_programs().back();
    Hook h;
    h.instruction = round % program.count();
    h.kind = kHookCapture;
    h.limit = round % 3 ? 1 << 20 : 16;
    captured->change_hooks({}, {h});
    call(program, "checked", stop);
    if (round % 4 == 0) captured->clear_hooks();
  }
  set_check_mask(0);
  synchronize_snapshots();
  int64_t dropped = 0;
  CHECK(!take_events(1 << 20, &dropped).empty(), "no snapshot was published");
  for (const ProgramPtr& p : all_programs()) p->clear_hooks();
}

}  // namespace dvm::test
