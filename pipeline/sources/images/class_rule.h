// The user's rule for the folder that names an image's class: LayoutOptions::classes_at.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

class ClassRule {
 public:
  enum class Kind {
    kRecognised,  // no rule given
    kDepth,       // the folder of this number from the top
    kParent,      // the folder that the image lies in
    kNone,        // there are no classes
    kPattern,     // where the pattern says {class}
  };

  // Throws ConfigError if the text is none of these.
  explicit ClassRule(const std::string& text);

  Kind kind() const noexcept { return kind_; }
  // Returns the position of the class for kDepth and kPattern, 1 being the topmost folder.
  std::size_t depth() const noexcept { return depth_; }
  // Returns whether a kPattern also names the split.
  bool names_split() const noexcept { return split_at_.has_value(); }

  // Returns whether the image lies below folders of this pattern, at any depth; true if there is no pattern.
  bool matches(std::string_view path) const;
  // Returns the class of an image that matches; std::nullopt if its path has no such folder. Not for kRecognised.
  std::optional<std::string_view> class_of(std::string_view path) const;
  // Returns the folder that names its split.
  std::string_view split_of(std::string_view path) const;

 private:
  void parse_pattern(const std::string& text);

  Kind kind_ = Kind::kRecognised;
  std::size_t depth_ = 0;
  std::vector<std::string> names_;  // in a pattern: "*" is any; also for the class and the split
  std::optional<std::size_t> split_at_;
};

}  // namespace headrace
