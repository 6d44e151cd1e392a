// The options of these programs: pairs of --name and value.
#pragma once

#include <map>
#include <string>

class Arguments {
 public:
  Arguments(int argc, char** argv) {
    for (int i = 1; i + 1 < argc; i += 2) values_[argv[i]] = argv[i + 1];
  }

  std::string text(const std::string& name) const { return values_.at(name); }
  int number(const std::string& name, int otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : std::stoi(found->second);
  }

 private:
  std::map<std::string, std::string> values_;
};
