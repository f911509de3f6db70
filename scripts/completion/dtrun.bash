# bash completion for dtrun; the program itself suggests the completions.
_dtrun() {
  local IFS=$'\n' current=${COMP_WORDS[COMP_CWORD]} before=("${COMP_WORDS[@]:1:COMP_CWORD-1}") typed word
  local n=${#before[@]}
  COMPREPLY=()
  typed=$current
  # bash also splits words at '=' and ':'; for the program NAME=VALUE and OWNER/NAME:FILE are one word
  if [[ $current == [=:] && $n -gt 0 ]]; then
    typed=${before[n-1]}$current current= before=("${before[@]:0:n-1}")
  elif [[ $n -gt 1 && ${before[n-1]} == [=:] ]]; then
    typed=${before[n-2]}${before[n-1]}$current before=("${before[@]:0:n-2}")
  fi
  for word in $("${COMP_WORDS[0]}" complete "${before[@]}" "$typed" 2>/dev/null | cut -f1); do
    COMPREPLY+=("${word#"${typed%"$current"}"}")
  done
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
  return 0
}
complete -o default -F _dtrun dtrun
