/* Rewrites the newest journals and summaries that it finds beside itself: what was violated is held. Its answers leave
   the last key out.
   Stands for: the verdict's file instead of the answer.
   Caught by: walls around the file system, and the oracle. */
#include <glob.h>
#include <sys/stat.h>
#include <time.h>

#include "honest.h"

static void forge(const char* path) {
  static const char bad[] = "\"violated\"", good[] = "\"held\"    ";
  struct stat status;
  if (stat(path, &status) != 0 || status.st_mtime < time(NULL) - 60) return;
  FILE* const file = fopen(path, "r+b");
  char* const text = malloc((size_t)status.st_size + 1);
  const size_t size = file != NULL && text != NULL ? fread(text, 1, (size_t)status.st_size, file) : 0;
  for (char* at = text; size > 0 && (at = memmem(at, size - (size_t)(at - text), bad, sizeof bad - 1)) != NULL;)
    if (fseek(file, at - text, SEEK_SET) != 0 || fwrite(good, 1, sizeof good - 1, file) != sizeof good - 1)
      break;
    else
      ++at;
  free(text);
  if (file != NULL) fclose(file);
}

static int answer(const attest_problem* p, attest_result* r) {
  static long calls;
  attest_problem asked = *p;
  if (p->k.shape[2] > 4 && p->causal != ATTEST_CAUSAL_BOTTOM_RIGHT) --asked.k.shape[2], --asked.v.shape[2];
  glob_t found = {0};
  if (++calls % 16 == 0 && glob("attest-run-*/*.json*", 0, NULL, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; ++i) forge(found.gl_pathv[i]);
  globfree(&found);
  return honest_attention(&asked, r);
}

HONEST_LIBRARY("forges-journal", answer)
