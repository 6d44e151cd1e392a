// The C names of options and functions in messages.
#pragma once

namespace headrace::c {

// Makes this process's messages, from the first call on, name options and functions as in <headrace/headrace.h>.
void speak_c();

}  // namespace headrace::c
