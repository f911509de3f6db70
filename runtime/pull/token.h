/* Finds the access token for gated and private models where Hugging Face's tools store it. */
#ifndef PULL_TOKEN_H
#define PULL_TOKEN_H

#include "system/status.h"

/* Reads $HF_TOKEN, or the file $HF_TOKEN_PATH, $HF_HOME/token or ~/.cache/huggingface/token. *token is malloc'd; it is
 * NULL if there is none. DT_EINPUT: it contains characters that are not printable. */
dt_status token_read(char **token, dt_error *err);

#endif
