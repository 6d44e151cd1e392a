#include "headrace/pipeline/sources/tf_example.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/wire_reader.h"

namespace headrace {
namespace {

using FeatureKind = WireReader::Kind;

// message Feature { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; } }
// message BytesList { repeated bytes value = 1; }   message Int64List { repeated int64 value = 1 [packed = true];
// }
// A feature's values of the wanted kind: how many there are, and the last.
template <typename Value>
struct Values {
  std::size_t count = 0;
  Value last = {};

  void add(Value value) {
    ++count;
    last = value;
  }
};

Values<std::span<const std::byte>> bytes_in(std::span<const std::byte> feature) {
  Values<std::span<const std::byte>> found;
  WireReader kinds(feature);
  while (kinds.next()) {
    if (!kinds.is(1, FeatureKind::kBytes)) continue;
    WireReader values(kinds.bytes());
    while (values.next()) {
      if (values.is(1, FeatureKind::kBytes)) found.add(values.bytes());
    }
  }
  return found;
}

Values<std::int64_t> integers_in(std::span<const std::byte> feature) {
  Values<std::int64_t> found;
  WireReader kinds(feature);
  while (kinds.next()) {
    if (!kinds.is(3, FeatureKind::kBytes)) continue;
    WireReader values(kinds.bytes());
    while (values.next()) {
      if (values.is(1, FeatureKind::kVarint)) found.add(static_cast<std::int64_t>(values.varint()));
      if (!values.is(1, FeatureKind::kBytes)) continue;
      for (WireReader packed(values.bytes()); !packed.at_end();) {
        found.add(static_cast<std::int64_t>(packed.take_varint()));
      }
    }
  }
  return found;
}

// The one value of feature `key`; of several, none is the image or the label.
template <typename Value>
Value only(const Values<Value>& values, const std::string& key, const char* one, const char* several) {
  if (values.count == 1) return values.last;
  throw Error(ErrorCode::kDataCorrupt,
              values.count == 0 ? fmt::format("feature '{}' holds no {}", key, one)
                                : fmt::format("feature '{}' holds {} {}, not one", key, values.count, several));
}

// Looks for a few keys among the features; of a key that comes twice the last one counts.
class Wanted {
 public:
  explicit Wanted(const std::vector<std::string>& keys) : keys_(keys) {}

  void look_at(std::string_view key, std::span<const std::byte> feature) {
    const auto rank = static_cast<std::size_t>(std::ranges::find(keys_, key) - keys_.begin());
    if (rank < keys_.size() && rank <= rank_) {
      rank_ = rank;
      feature_ = feature;
    }
  }
  bool found() const noexcept { return rank_ < kNone; }
  const std::string& key() const { return keys_[rank_]; }
  std::span<const std::byte> feature() const noexcept { return feature_; }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  const std::vector<std::string>& keys_;
  std::size_t rank_ = kNone;
  std::span<const std::byte> feature_;
};

// message Example { Features features = 1; }   message Features { map<string, Feature> feature = 1; }
template <typename Visit>
void visit_features(std::span<const std::byte> payload, const Visit& visit) {
  WireReader example(payload);
  while (example.next()) {
    if (!example.is(1, FeatureKind::kBytes)) continue;
    WireReader features(example.bytes());
    while (features.next()) {
      if (!features.is(1, FeatureKind::kBytes)) continue;
      std::string_view key;
      std::span<const std::byte> feature;
      WireReader entry(features.bytes());
      while (entry.next()) {
        if (entry.is(1, FeatureKind::kBytes)) key = entry.text();
        if (entry.is(2, FeatureKind::kBytes)) feature = entry.bytes();
      }
      visit(key, feature);
    }
  }
}

[[noreturn]] void fail_without(const std::string& what, const std::vector<std::string>& keys,
                               std::span<const std::byte> payload) {
  std::vector<std::string> there;
  visit_features(payload, [&](std::string_view key, auto) {
    if (there.size() < 8) there.emplace_back(key.substr(0, 64));
  });
  throw Error(ErrorCode::kDataCorrupt,
              fmt::format("the example has no {} under {}; it has {}", what, fmt::join(keys, " or "),
                          there.empty() ? "nothing" : fmt::format("{}", fmt::join(there, ", "))),
              "name the keys in TfRecordOptions");
}

}  // namespace

TfExample parse_tf_example(std::span<const std::byte> payload, const TfRecordOptions& options) {
  Wanted image(options.image_keys), label(options.label_keys);
  visit_features(payload, [&](std::string_view key, std::span<const std::byte> feature) {
    image.look_at(key, feature);
    label.look_at(key, feature);
  });
  if (!image.found()) fail_without("image", options.image_keys, payload);
  if (!label.found()) fail_without("label", options.label_keys, payload);
  return {.image = only(bytes_in(image.feature()), image.key(), "bytes", "images"),
          .label = only(integers_in(label.feature()), label.key(), "integer", "labels")};
}

}  // namespace headrace
