// Per-channel means and standard deviations of well-known training sets, for values in 0..1.
#pragma once

#include <vector>

namespace headrace::tools {

inline const std::vector<float> kCifarMean{0.4914F, 0.4822F, 0.4465F};
inline const std::vector<float> kCifarStd{0.2470F, 0.2435F, 0.2616F};
inline const std::vector<float> kImagenetMean{0.485F, 0.456F, 0.406F};
inline const std::vector<float> kImagenetStd{0.229F, 0.224F, 0.225F};

}  // namespace headrace::tools
