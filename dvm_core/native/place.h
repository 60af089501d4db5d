// Source places: where in the user's code an instruction comes from. All of it is used with the GIL held.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace dvm {

struct Place {
  std::string file;
  int line = 0, end_line = 0, column = 0, end_column = 0;  // from 1, columns in UTF-16 code units, 0: unknown
  std::string function;
  bool backward = false;
  bool operator==(const Place&) const = default;
};

// Interned; ids start at 1 and are never reused.
uint32_t intern_place(const Place& place);
// Throws std::out_of_range for an unknown id.
const Place& place_at(uint32_t id);
// The same place, marked backward; 0 stays 0.
uint32_t backward_place(uint32_t id);
// "model.py:42" with the whole path, or "" for 0.
std::string place_text(uint32_t id);
bool place_is_backward(uint32_t id);

// Files under these prefixes are no user code.
void set_library_prefixes(std::vector<std::string> prefixes);
// The place of this thread's innermost Python frame in user code, `skip` frames left out at the top; 0 if there is none.
uint32_t user_place(int skip);

}  // namespace dvm
