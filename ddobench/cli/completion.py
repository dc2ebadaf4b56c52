"""Tab completion of `python -m ddobench`, which Hydra's own script cannot serve.

Hydra completes a program by its name, and the name here is `python`. So bash is given a function
that looks whether the line begins with `python -m ddobench`, asks us as if `ddobench` had been
typed, and otherwise hands over to whatever completed `python` before.
"""

from ddobench.errors import UsageError

_INSTALL = """\
declare -F _comp_load > /dev/null && _comp_load python
declare -F _completion_loader > /dev/null && _completion_loader python
_ddobench_before=$(complete -p python 2> /dev/null | sed -n 's/.* -F \\([^ ]*\\) .*/\\1/p')
[ "$_ddobench_before" == _ddobench_python ] && _ddobench_before=
_ddobench_python()
{
    if [ "${COMP_WORDS[1]} ${COMP_WORDS[2]}" != "-m ddobench" ] || (( COMP_CWORD < 3 )); then
        [ -n "$_ddobench_before" ] && "$_ddobench_before" "$@"
        return
    fi
    local line="${COMP_LINE:0:COMP_POINT}"
    line="ddobench ${line#*-m*ddobench }"
    local choices
    choices=$(COMP_POINT=${#line} COMP_LINE="$line" \\
        "${COMP_WORDS[0]}" -m ddobench -sc query=bash 2> /dev/null)
    COMPREPLY=($(compgen -W "$choices" -- "${COMP_WORDS[COMP_CWORD]}"))
}
COMP_WORDBREAKS=${COMP_WORDBREAKS//=}
complete -o nospace -o default -F _ddobench_python python python3
"""
_UNINSTALL = """\
complete -r python python3
[ -n "$_ddobench_before" ] && complete -F "$_ddobench_before" python python3
unset -f _ddobench_python
"""
_SCRIPTS = {"install=bash": _INSTALL, "uninstall=bash": _UNINSTALL}


def completion_of_the_module(word: str) -> str | None:
    """Return the script that completes `python -m ddobench`; None: a question that Hydra answers.

    Raises UsageError for a shell that cannot complete it.
    """
    deed, _, shell = word.partition("=")
    if deed == "query":
        return None
    if word not in _SCRIPTS:
        raise UsageError(
            f"{shell} completes programs by their name alone; use ddobench -sc {word}, "
            "and type ddobench in place of python -m ddobench"
        )
    return _SCRIPTS[word]
