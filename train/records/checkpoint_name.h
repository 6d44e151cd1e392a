// Checkpoint names with placeholders for numbers: "ckpt-{epoch}-{val_loss:.4f}".
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace headrace {

inline constexpr const char* kCheckpointSuffix = ".safetensors";

// Placeholders and their values: whole numbers or not; std::nullopt if not known yet.
using NameValues = std::vector<std::pair<std::string, std::optional<double>>>;

// Returns the name with its suffix. Whole numbers without a format are written as integers, unknown values as
// "none". Throws ConfigError for an unmatched brace, an unknown placeholder, an invalid format, and a name that is
// empty or contains a folder.
std::string checkpoint_name(const std::string& pattern, const NameValues& values);

}  // namespace headrace
