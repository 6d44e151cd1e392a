// The style of a page.
#pragma once

namespace headrace::tools {

// The text of a <style> element: light and dark, narrow and wide, and on paper. Colours of data are c0, c1 ... by
// number: those of Okabe and Ito, which colour-blind readers can distinguish, a shade darker or lighter if needed.
extern const char* const kPageStyle;

}  // namespace headrace::tools
