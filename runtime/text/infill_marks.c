/* Tokens of fill-in-the-middle: see infill_marks.h. The spellings are those that llama.cpp knows. */
#include "text/infill_marks.h"

#include "text/steps.h"

#define SPELLINGS 8

static const char *const known[INFILL_MARKS][SPELLINGS] = {
    [INFILL_PREFIX] = {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<\uFF5Cfim\u2581begin\uFF5C>", "<PRE>",
                       "\u2581<PRE>", "<|code_prefix|>", "<|prefix|>"},
    [INFILL_SUFFIX] = {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<\uFF5Cfim\u2581hole\uFF5C>", "<SUF>",
                       "\u2581<SUF>", "<|code_suffix|>", "<|suffix|>"},
    [INFILL_MIDDLE] = {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<\uFF5Cfim\u2581end\uFF5C>", "<MID>",
                       "\u2581<MID>", "<|code_middle|>", "<|middle|>"},
    [INFILL_PAD] = {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"},
    [INFILL_REPO] = {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"},
    [INFILL_FILE] = {"<|file_sep|>"},
};

dt_status add_infill(tok *t, const int32_t *named, dt_error *err) {
  dt_status status = DT_OK;
  for (int mark = 0; mark < INFILL_MARKS; mark++) {
    t->infill[mark] = named ? named[mark] : -1;
    for (int i = 0; i < SPELLINGS && known[mark][i] && t->infill[mark] < 0; i++)
      t->infill[mark] = tok_added(t, known[mark][i]);
  }
  const bool whole = t->infill[INFILL_PREFIX] >= 0 && t->infill[INFILL_SUFFIX] >= 0 && t->infill[INFILL_MIDDLE] >= 0;
  for (int mark = INFILL_PAD; mark < INFILL_MARKS && whole && !status; mark++)
    if (t->infill[mark] >= 0) status = add_end(t, t->infill[mark], err);
  return status;
}
