#include "bind_common.h"
#include "place.h"

namespace dvm {

using namespace nb::literals;

static uint32_t place_id(int64_t id) { return id > 0 && id <= UINT32_MAX ? static_cast<uint32_t>(id) : 0; }

void bind_places(nb::module_& m) {
  m.def(
      "place",
      [](std::string file, int line, int end_line, int column, int end_column, std::string function, bool backward) {
        return intern_place({std::move(file), line, end_line ? end_line : line, column, end_column, std::move(function), backward});
      },
      "file"_a, "line"_a, "end_line"_a = 0, "column"_a = 0, "end_column"_a = 0, "function"_a = "", "backward"_a = false,
      "Interns a source place; ids start at 1. Lines from 1, columns from 1 in UTF-16 code units, 0 where unknown.");
  m.def(
      "place_info",
      [](int64_t id) {
        const Place& p = place_at(place_id(id));
        return nb::make_tuple(p.file, p.line, p.end_line, p.column, p.end_column, p.function, p.backward);
      },
      "place"_a, "(file, line, end line, column, end column, function, backward) of a place. IndexError for an unknown id.");
  m.def(
      "backward_place", [](int64_t id) { return id == 0 ? 0u : backward_place(place_id(id) ? place_id(id) : UINT32_MAX); }, "place"_a,
      "The same place, marked backward.");
  m.def("set_library_prefixes", &set_library_prefixes, "prefixes"_a, "Files under these prefixes are no user code; user_place walks past them.");
  m.def(
      "user_place", [](int depth) { return user_place(depth); }, "frame_depth"_a = 0,
      "The place of this thread's innermost Python frame in user code, 0 if there is none.");
}

}  // namespace dvm
