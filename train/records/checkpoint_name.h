// Names of checkpoints with places for numbers: "ckpt-{epoch}-{val_loss:.4f}".
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace headrace {

inline constexpr const char* kCheckpointSuffix = ".safetensors";

// What may stand in braces: a whole number or not, nothing where it is not known yet.
using NameValues = std::vector<std::pair<std::string, std::optional<double>>>;

// With the suffix. Whole numbers are written as such where no format is given; "none" is what is not known.
// ConfigError for a brace without its partner, a name that is not among the values, a format that is none, and for
// what would be another folder.
std::string checkpoint_name(const std::string& pattern, const NameValues& values);

}  // namespace headrace
