// Tile code of one area: instructions become tile instructions on registers, registers get UB addresses, and the whole becomes words.
#pragma once
#include <vector>

#include "areacode.h"
#include "profile.h"

namespace dvm {

struct EncodeInput {
  const ProgramCode& code;
  const Fusing& fusing;
  const std::vector<uint8_t>& keep;      // by local value: the caller's memory
  const std::vector<uint8_t>& stored;    // by local value: in memory after its area (kept or a workspace slot)
  const std::vector<HookSite>& hooks;
  int64_t tile_elements;
  const Profile& profile;
  PassLog* log = nullptr;
  // Areas of segments of near shapes, in the order of this one's: their tile code is taken where it is the same.
  std::vector<const std::vector<AreaCode>*> near = {};
};

// Slots of kind kWorkspace name their value; their offsets, and those of scratch memory, are filled in when the workspace is planned.
// Throws UserError where an op has no kernel for its dtype.
AreaCode encode(const EncodeInput& in, int area);

}  // namespace dvm
