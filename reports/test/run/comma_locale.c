// Preloaded into the program: does what a library that it loads may do, takes the user's locale for the whole process.
#include <locale.h>
#include <stdio.h>

__attribute__((constructor)) static void take_the_users_locale(void) {
  // A test that never saw a comma would show nothing.
  char text[8];
  if (setlocale(LC_ALL, "") == NULL || snprintf(text, sizeof text, "%.1f", 0.5) != 3 || text[1] != ',')
    fputs("the locale has no decimal comma\n", stderr);
}
