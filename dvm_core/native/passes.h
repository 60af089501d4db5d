// What each pass of the compiler made of a program, as text. Written only if somebody asks.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "fuse.h"

namespace dvm {

const char* kind_name(AreaKind kind);

class PassLog {
 public:
  // Texts of one pass (of its areas) are joined.
  void add(const char* pass, const std::string& text);
  // The passes from the instructions to the areas.
  void add_fusing(const ProgramCode& code, int begin, int end, const Fusing& fusing);
  std::vector<std::pair<std::string, std::string>> passes;
};

}  // namespace dvm
