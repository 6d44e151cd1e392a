// Which folder names an image's class, as the user says it: LayoutOptions::classes_at.
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
    kRecognised,  // nothing was said
    kDepth,       // the folder of this number from the top
    kParent,      // the folder that the image lies in
    kNone,        // there are no classes
    kPattern,     // where the pattern says {class}
  };

  // ConfigError where the text is none of these.
  explicit ClassRule(const std::string& text);

  Kind kind() const noexcept { return kind_; }
  // Of kDepth and kPattern: where the class stands, 1 being the topmost folder.
  std::size_t depth() const noexcept { return depth_; }
  // Of kPattern: whether it names the split, too.
  bool names_split() const noexcept { return split_at_.has_value(); }

  // Whether the image lies below folders of this pattern, at any depth below them; true where there is none.
  bool matches(std::string_view path) const;
  // The class of an image that matches; nothing where its path has no such folder. Not of kRecognised.
  std::optional<std::string_view> class_of(std::string_view path) const;
  // The folder that names its split.
  std::string_view split_of(std::string_view path) const;

 private:
  void parse_pattern(const std::string& text);

  Kind kind_ = Kind::kRecognised;
  std::size_t depth_ = 0;
  std::vector<std::string> names_;  // of a pattern: "*" is any; those of the class and the split are "*"
  std::optional<std::size_t> split_at_;
};

}  // namespace headrace
