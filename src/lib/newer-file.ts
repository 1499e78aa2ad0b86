/** A file of the data folder was written by a newer version. The message is for the operator. */
export class NewerFile extends Error {
  constructor(path: string, found: number, known: number) {
    super(
      `The file ${path} was written by a newer version of Tocsin: its schema version is ${found}, and this version knows up to ${known}.\n` +
        "Nothing was changed. Start the newer version on this folder, or restore the backup that was made before the upgrade, " +
        "or use another folder with --data-dir.",
    );
    this.name = "NewerFile";
  }
}
