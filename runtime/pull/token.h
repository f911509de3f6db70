/* The token for gated and private models, from where Hugging Face's tools keep it. */
#ifndef PULL_TOKEN_H
#define PULL_TOKEN_H

#include "system/status.h"

/* $HF_TOKEN, or the file $HF_TOKEN_PATH, $HF_HOME/token or ~/.cache/huggingface/token: malloc'd; NULL: there is none.
 * DT_EINPUT: it is not of printable characters. */
dt_status token_read(char **token, dt_error *err);

#endif
