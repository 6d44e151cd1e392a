// How a page looks.
#pragma once

namespace headrace::tools {

// The text of a <style> element: light and dark, narrow and wide, and on paper. Colours of data are c0, c1 ... by
// number, those of Okabe and Ito, which colour-blind readers tell apart, a shade darker or lighter where needed.
extern const char* const kPageStyle;

}  // namespace headrace::tools
