# fish completion of dtrun: the program itself says what a word may become.
function __dtrun_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l program $words[1]
    $program complete $words[2..-1] 2>/dev/null
end
complete -c dtrun -a '(__dtrun_complete)'
