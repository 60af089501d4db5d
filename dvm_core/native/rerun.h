// A launch's instructions once more, on the inputs it had, for the debugger: on another device, unfused, or with every result kept.
#pragma once
#include <memory>
#include <vector>

#include "launch.h"

namespace dvm {

class Rerun {
 public:
  // Runs them. all: keeps every result, else those the launch was asked for. Logs, counts and hooks nothing, and writes nothing of the
  // launch. Throws UserError of an instruction, and where an input may not be read any more.
  Rerun(Launch& launch, const Profile& profile, bool unfused, bool all);

  // By local id; data null: not kept.
  Value value(int local_id) const;

 private:
  Launch::Plan plan_;
};

}  // namespace dvm
