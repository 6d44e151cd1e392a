// A row of the table of wrong inputs (wrong_inputs_test.cpp).
#pragma once

#include <string>
#include <vector>

namespace headrace::test {

struct WrongInput {
  std::string line;   // arguments between blanks; 'one with blanks'; @ stands for the folder of inputs
  int status;         // 2: asked wrongly; 1: the run failed
  std::string words;  // that the message must have; where they end a line, all of it after "headrace: "
};

using WrongInputs = std::vector<WrongInput>;

}  // namespace headrace::test
