// Numbers in cells: of tables and members of samples, in text or JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/pipeline/record.h"

namespace headrace {

// Beyond it distinct neighbouring integers are the same double.
inline constexpr double kMaxExactInteger = 9007199254740992.0;  // 2^53

struct PlainNumber {
  double value = 0;
  std::optional<std::int64_t> integer = {};  // in any notation: 7, 7.0, 7e0
  bool plain = false;                        // written as an integer: digits and a sign
};

// Parses a number; std::nullopt for names, including nan and inf. Surrounding blanks and a plus sign are ignored.
std::optional<PlainNumber> parse_plain_number(std::string_view text);

// Determines the kind of a column's cells, one after another.
class CellKind {
 public:
  void look_at(std::string_view text);
  const char* name() const noexcept;  // "integers", "numbers", "text"; empty cells are text
  bool are_numbers() const noexcept { return numbers_; }

 private:
  bool plain_ = true, numbers_ = true;
};

// Parses JSON, with Python's NaN, Infinity and -Infinity as null; returns a discarded value for what is none.
nlohmann::json parse_json_cell(std::string_view text);

// Collects numbers one by one until it is known whether all are integers. Keeps its memory when cleared. Errors
// are Error(kDataCorrupt) that say what a cell "holds".
class CellNumbers {
 public:
  void clear();
  // Parses one number. Throws if it is none.
  void add_number(std::string_view text);
  // Parses numbers with blanks, commas or semicolons between them. Throws naming what is none.
  void add_text(std::string_view text);
  // Takes a number, a truth value, or arrays of them, in which all arrays of one depth are equally long. Throws if
  // it is none of this.
  void add_json(const nlohmann::json& value) { add_json_at(value, 0); }

  // The length of each axis, outermost first; none for one number of JSON.
  std::span<const std::int64_t> extents() const noexcept { return extents_; }
  std::size_t size() const noexcept { return floats_.size(); }
  // Returns kI64 if all are written as integers, else kF32.
  DType type() const noexcept { return plain_ ? DType::kI64 : DType::kF32; }
  // Returns them as i64 or, rounded to nearest, f32. REQUIRES: type() is kI64 for i64.
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
