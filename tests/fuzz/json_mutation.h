// Changes of JSON texts that stay JSON, so that what lies behind the parser of the text is reached.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/rng.h"
#include "headrace/tests/support/bytes.h"

namespace headrace::fuzz {

using AnyJson = nlohmann::ordered_json;

// Values at which readers go wrong, and one of the text's own.
inline AnyJson telling_value(const AnyJson& flat, Philox& random) {
  const std::vector<AnyJson> telling{nullptr,
                                     true,
                                     0,
                                     -1,
                                     1.5,
                                     1e308,
                                     std::uint64_t{1} << 63,
                                     INT64_MIN,
                                     2147483648,
                                     "",
                                     "x",
                                     AnyJson::array(),
                                     AnyJson::object(),
                                     AnyJson::array({AnyJson::object()}),
                                     "18446744073709551616"};
  const std::uint32_t pick = random.below(static_cast<std::uint32_t>(telling.size() + 4));
  if (pick < telling.size()) return telling[pick];
  return std::next(flat.begin(), random.below(static_cast<std::uint32_t>(flat.size()))).value();
}

// Returns `text` with one to three of its values replaced by others or removed.
// REQUIRES: a JSON object or array that is not empty.
inline std::string mutated_json(std::string_view text, Philox& random) {
  AnyJson json = AnyJson::parse(text);
  const AnyJson flat = json.flatten();
  for (std::uint32_t changes = 1 + random.below(3); changes > 0; --changes) {
    AnyJson::json_pointer place(
        std::next(flat.begin(), random.below(static_cast<std::uint32_t>(flat.size()))).key());
    for (std::uint32_t up = random.below(3); up > 1 && place != AnyJson::json_pointer(); --up) place.pop_back();
    if (place == AnyJson::json_pointer() || !json.contains(place)) continue;
    const AnyJson::json_pointer above = place.parent_pointer();
    if (json[above].is_object() && random.below(4) == 0) {
      json[above].erase(place.back());
    } else {
      json[place] = telling_value(flat, random);
    }
  }
  return json.dump();
}

// Makes an input that is no JSON a mutation of one of the seeds, chosen by the input's own bytes.
inline void make_json(test::Bytes& input, std::span<const test::Bytes> seeds) {
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  if (AnyJson::accept(text)) return;
  Philox random({.seed = xxh3(input)});
  const test::Bytes& seed = seeds[random.below(static_cast<std::uint32_t>(seeds.size()))];
  input = test::to_bytes(mutated_json({reinterpret_cast<const char*>(seed.data()), seed.size()}, random));
}

}  // namespace headrace::fuzz
