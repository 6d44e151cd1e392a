// The values of cells that are classes, numbered as labels are.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/pipeline/sources/fingerprint.h"

namespace headrace {

class CellClasses {
 public:
  void add(std::string name) { numbers_.try_emplace(std::move(name), 0); }
  bool empty() const noexcept { return numbers_.empty(); }

  // Numbers the names in numeric order if `numeric` and all are integers, else in bytewise order.
  void settle(bool numeric);
  // Numbers these names, and no others, in their order.
  void settle(const std::vector<std::string>& names);
  // Returns nothing for a name that was not added. REQUIRES: settled.
  std::optional<std::int64_t> number_of(std::string_view name) const;
  // Returns the names by number. REQUIRES: settled.
  std::vector<std::string> names() const;
  void add_to(Fingerprint& fingerprint) const;

 private:
  std::map<std::string, std::int64_t, std::less<>> numbers_;
};

}  // namespace headrace
