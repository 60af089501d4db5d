import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['extension/dist/**', 'build/**', 'node_modules/**', '.venv/**'] },
  ...tseslint.configs.recommended.map((c) => ({ ...c, files: ['**/*.ts'] })),
  {
    files: ['**/*.ts'],
    languageOptions: { parserOptions: { project: './extension/tsconfig.json', tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: false }],
      '@typescript-eslint/consistent-type-imports': 'error',
      eqeqeq: 'error',
      'no-console': 'error',
    },
  },
  // node:test awaits what `test` returns.
  { files: ['tests/vscode/unit/*.ts'], rules: { '@typescript-eslint/no-floating-promises': 'off' } },
);
