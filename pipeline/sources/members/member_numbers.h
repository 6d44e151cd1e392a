// Numbers in a member of a sample: text, JSON or a NumPy array.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/pipeline/record.h"

namespace headrace {

// Parses JSON, with Python's NaN, Infinity and -Infinity as null; returns a discarded value for what is none.
nlohmann::json parse_json_member(std::string_view text);

// An array of numbers, collected one by one until it is known whether all are integers. Keeps its memory when
// cleared.
class MemberNumbers {
 public:
  void clear();
  // Parses numbers with blanks, commas or semicolons between them. Throws Error(kDataCorrupt) naming what is none.
  void add_text(std::string_view text);
  // Takes a number, a truth value, or arrays of them, in which all arrays of one depth are equally long. Throws
  // Error(kDataCorrupt) if it is none of this.
  void add_json(const nlohmann::json& value);

  // The length of each axis, outermost first; none for one number of JSON.
  std::span<const std::int64_t> extents() const noexcept { return extents_; }
  std::size_t size() const noexcept { return floats_.size(); }
  bool are_integers() const noexcept { return plain_; }
  // Returns them as i64 or, rounded to nearest, f32. REQUIRES: are_integers() for i64.
  std::span<const std::byte> bytes(DType type) const;

 private:
  void add(std::int64_t integer);
  void add(double value);
  void add_json_at(const nlohmann::json& value, std::size_t depth);

  bool plain_ = true;
  std::vector<std::int64_t> integers_;
  std::vector<float> floats_;
  std::vector<std::int64_t> extents_;
};

}  // namespace headrace
