// How the command's help is set.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace headrace::tools {

// Two columns: "--prefetch N" and what it is, with its default; lines of 100 letters, or of the terminal's width
// where that is less.
class HelpText : public CLI::Formatter {
 public:
  HelpText();

  std::string make_usage(const CLI::App* command, std::string name) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;

 private:
  std::string line(const std::string& name, const std::string& description) const;

  std::size_t width_;
};

}  // namespace headrace::tools
