#include "place.h"

#include <deque>
#include <stdexcept>
#include <unordered_map>

namespace dvm {
namespace {

struct PlaceHash {
  size_t operator()(const Place& p) const {
    size_t h = std::hash<std::string>()(p.file) * 31 + std::hash<std::string>()(p.function);
    for (const int n : {p.line, p.end_line, p.column, p.end_column, static_cast<int>(p.backward)}) h = h * 1000003 + static_cast<size_t>(n);
    return h;
  }
};

struct Table {
  std::deque<Place> places{Place{}};  // a deque: references stay valid
  std::unordered_map<Place, uint32_t, PlaceHash> ids;
  std::unordered_map<uint32_t, uint32_t> backward;
};

Table& table() {
  static Table* t = new Table;
  return *t;
}

}  // namespace

uint32_t intern_place(const Place& place) {
  Table& t = table();
  const auto [it, made] = t.ids.try_emplace(place, static_cast<uint32_t>(t.places.size()));
  if (made) t.places.push_back(place);
  return it->second;
}

const Place& place_at(uint32_t id) {
  Table& t = table();
  if (id == 0 || id >= t.places.size()) throw std::out_of_range("no place " + std::to_string(id) + "; ids are 1.." + std::to_string(t.places.size() - 1));
  return t.places[id];
}

uint32_t backward_place(uint32_t id) {
  if (id == 0) return 0;
  const Place& forward = place_at(id);
  if (forward.backward) return id;
  uint32_t& known = table().backward[id];
  if (!known) {
    Place place = forward;
    place.backward = true;
    known = intern_place(place);
  }
  return known;
}

std::string place_text(uint32_t id) {
  if (id == 0 || id >= table().places.size()) return "";
  const Place& p = place_at(id);
  return p.file + ":" + std::to_string(p.line);
}

bool place_is_backward(uint32_t id) { return id != 0 && id < table().places.size() && table().places[id].backward; }

}  // namespace dvm
