export type Shell = "bash" | "zsh" | "fish" | "powershell";

/**
 * The script that has a shell ask `skillhost complete <index> <words…>`, where the index is that of the word at the cursor. Each answer is a line:
 * a value, a tab and its description; `:files` and `:folders` ask for paths. Only the program on the PATH runs, even if the user
 * typed a path such as `./skillhost`, because a path may lead to a program of a checkout.
 */
export function completionScript(shell: Shell): string {
  return { bash, zsh, fish, powershell }[shell];
}

// Runs on bash 3.2, the version of macOS.
const bash = `# Completion of skillhost for bash. In ~/.bashrc: source <(skillhost completion bash)
_skillhost() {
  local line value current prefix="" IFS=$' \\t\\n'
  local -a words
  # Bash splits words at = and :, so the line is split again.
  read -r -a words <<< "\${COMP_LINE:0:COMP_POINT}"
  [[ \${COMP_LINE:0:COMP_POINT} == *[[:space:]] ]] && words+=("")
  current=\${words[\${#words[@]} - 1]}
  # Bash replaces only what follows the last of these characters.
  [[ $COMP_WORDBREAKS == *=* && $current == *=* ]] && prefix=\${current%"\${current##*=}"}
  [[ $COMP_WORDBREAKS == *:* && $current == *:* ]] && prefix=\${current%"\${current##*[=:]}"}
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files | :folders)
        compopt -o filenames 2> /dev/null
        while IFS= read -r value; do COMPREPLY+=("$value"); done < <(
          if [[ $line == :files ]]; then compgen -f -- "\${current#"$prefix"}"; else compgen -d -- "\${current#"$prefix"}"; fi
        )
        ;;
      *)
        value=\${line%%$'\\t'*}
        COMPREPLY+=("\${value#"$prefix"}")
        ;;
    esac
  done < <(command skillhost complete "$((\${#words[@]} - 2))" "\${words[@]:1}" 2> /dev/null < /dev/null)
}
complete -F _skillhost skillhost
`;

const zsh = `#compdef skillhost
# Completion of skillhost for zsh. In ~/.zshrc, after compinit: source <(skillhost completion zsh)
_skillhost() {
  local line value tab=$'\\t'
  local -a found
  for line in "\${(@f)$(command skillhost complete $((CURRENT - 2)) "\${(@)words[2,CURRENT - 1]}" "$PREFIX" 2> /dev/null < /dev/null)}"; do
    case $line in
      '') ;;
      :files) _files ;;
      :folders) _files -/ ;;
      *)
        value=\${line%%$tab*}
        # A colon separates a value from its description.
        found+=("\${value//:/\\\\:}:\${line#*$tab}")
        ;;
    esac
  done
  (( $#found )) && _describe -t values skillhost found
}
if [[ \${zsh_eval_context[-1]} == loadautofunc ]]; then
  _skillhost "$@"
else
  compdef _skillhost skillhost
fi
`;

const fish = `# Completion of skillhost for fish. Once: skillhost completion fish > ~/.config/fish/completions/skillhost.fish
function __skillhost_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in (command skillhost complete (math (count $words) - 1) $words[2..-1] "$current" 2>/dev/null </dev/null)
        switch $line
            case ':files'
                __fish_complete_path "$current"
            case ':folders'
                __fish_complete_directories "$current"
            case '*'
                printf '%s\\n' $line
        end
    end
end
complete -c skillhost -f -a '(__skillhost_complete)'
`;

const powershell = `# Completion of skillhost for PowerShell. In $PROFILE: skillhost completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName skillhost -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $program = Get-Command skillhost -CommandType Application, ExternalScript -ErrorAction Ignore | Select-Object -First 1
    if ($null -eq $program) { return }
    $words = @($commandAst.CommandElements | Where-Object { $_.Extent.StartOffset -lt $cursorPosition } |
        Select-Object -Skip 1 | ForEach-Object { $_.Extent.Text })
    # PowerShell does not pass empty words, so a word at the index may be missing.
    $index = if ($wordToComplete -eq '') { $words.Count } else { $words.Count - 1 }
    & $program complete $index @words 2>$null | Where-Object { -not $_.StartsWith(':') } | ForEach-Object {
        $value, $about = $_ -split "\`t", 2
        if (-not $about) { $about = $value }
        [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $about)
    }
}
`;
